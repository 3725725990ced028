"""A verdict from outside, on a terminal and in Markdown."""

from __future__ import annotations

from unstall.records.attached import AttachedProcess, AttachReport
from unstall.report.layout import Page
from unstall.report.markdown import MarkdownPage
from unstall.report.thresholds import NOTABLE_CORES
from unstall.text import units

_MOST_ROWS, _MOST_PHASES, _MOST_THREADS = 24, 2, 6


def page(report: AttachReport, width: int = 100) -> Page:
    """For a terminal of ``width`` cells."""
    return _fill(Page.fitting(width, narrowest=60), report)


def markdown(report: AttachReport) -> str:
    """For an issue."""
    return _fill(MarkdownPage(), report).as_text()


def _fill(page: Page, report: AttachReport) -> Page:
    page.rule(f"unstall attach · {report.pid}")
    page.paragraph(f"{report.pattern}: {report.headline}", "bold", "**")
    page.blank()
    culprit = report.culprit
    if culprit is not None:
        page.field("Culprit", f"{culprit.function} {culprit.file}:{culprit.line} ({culprit.where})")
        if culprit.code:
            page.field("", f"> {culprit.code.strip()}")
    page.bullets("Evidence", report.evidence, 2)
    page.blank()
    header = ("", "cores", "no core", "disk", "read", "memory", "time in")
    page.table("Processes", header, [_row(process) for process in report.processes[:_MOST_ROWS]], align="lrrrrrl")
    threads = [
        (f"{name} of {process.role} ({process.pid})", f"{cores:.2f}")
        for process in report.processes
        for name, cores in process.threads
        if cores >= NOTABLE_CORES
    ]
    page.table("Threads", ("", "cores"), sorted(threads, key=lambda row: row[1], reverse=True)[:_MOST_THREADS])
    page.blank()
    page.bullets("Not known", report.unknown, 2)
    page.phrases("Looked", [f"for {units.seconds(report.watched_s)}", "from outside"])
    return page


def _row(process: AttachedProcess) -> tuple[str, ...]:
    phases = [f"{name} {units.percent(share)}" for name, share in list(process.phases.items())[:_MOST_PHASES]]
    return (
        f"{process.role} ({process.pid})",
        f"{process.cores:.2f}",
        units.percent(process.waits_for_core),
        f"{units.bytes_(process.read_bytes_per_s)}/s",
        f"{units.bytes_(process.read_chars_per_s)}/s",
        units.bytes_(process.rss_bytes),
        ", ".join(phases),
    )

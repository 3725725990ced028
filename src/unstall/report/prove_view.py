"""What `unstall prove` says of a change, for the terminal and as Markdown for a pull request."""

from __future__ import annotations

import shlex

from unstall.records.proof import Proof
from unstall.records.remedies import SAMENESS_MEANS
from unstall.records.report import Report
from unstall.report.layout import Page
from unstall.report.markdown import MarkdownPage
from unstall.report.thresholds import MORE_CPU, MORE_MEMORY
from unstall.text import units

COLOURS = {"proven": "green", "different": "red", "not-faster": "yellow", "inconclusive": "yellow", "refused": "red"}
_SIGNS = {"proven": "✅", "different": "❌", "not-faster": "🐢", "inconclusive": "❔", "refused": "⛔"}


def page(report: Report, width: int = 100) -> Page:
    """The verdict for a terminal of ``width`` cells."""
    return _fill(Page.fitting(width), report)


def markdown(report: Report) -> str:
    """The verdict for a pull request."""
    return _fill(MarkdownPage(), report).as_text()


def _fill(page: Page, report: Report) -> Page:
    proof = report.proof
    assert proof is not None
    page.rule("unstall prove")
    page.paragraph(headline(proof), f"bold {COLOURS[proof.verdict]}", _SIGNS[proof.verdict])
    page.blank()
    page.field("Change", proof.changes)
    page.field("Command", shlex.join(report.run.command))
    if proof.first_difference is not None:
        page.field("First", str(proof.first_difference))
    page.blank()
    if proof.seconds is not None:
        page.table("Whole run", ("", "original", "changed"), figures(proof))
    if proof.unreached:
        page.field("Not run", f"{', '.join(proof.unreached)}: no run was seen to reach this part of the change")
    if proof.break_even_steps:
        page.field("Break-even", f"after {proof.break_even_steps} steps: it starts more slowly")
    page.bullets("Known by", proof.known_by, 3)
    page.bullets("Mind", report.run.notes, 3)
    return page


def headline(proof: Proof) -> str:
    """The verdict in a sentence."""
    if proof.verdict == "proven" and proof.ratio is not None and proof.sameness is not None:
        return f"proven: {_times(proof)} faster, {proof.sameness}: {SAMENESS_MEANS[proof.sameness]}{_but(proof)}"
    if proof.verdict == "not-faster" and proof.ratio is not None:
        return f"not faster: whole runs are {_times(proof)} as fast"
    so_far = f"; so far the results are the same ({proof.sameness})" if proof.sameness is not None else ""
    return f"{proof.verdict}: {proof.reason}{so_far}"


def figures(proof: Proof) -> list[tuple[str, str, str]]:
    """Rows of a table: what, of the original, of the changed program."""
    rows = []
    if proof.seconds is not None:
        rows.append(("time", units.seconds(proof.seconds.original), units.seconds(proof.seconds.changed)))
    if proof.memory_bytes is not None:
        rows.append(("memory", units.bytes_(proof.memory_bytes.original), units.bytes_(proof.memory_bytes.changed)))
    if proof.cpu_s is not None and proof.cpu_s.original:
        rows.append(("cores", units.seconds(proof.cpu_s.original), units.seconds(proof.cpu_s.changed)))
    return rows


def _but(proof: Proof) -> str:
    """What a faster program takes more of, where that is worth a word."""
    more = [
        f"{units.factor(figure.changed / figure.original)} {name}"
        for figure, least, name in (
            (proof.memory_bytes, MORE_MEMORY, "the memory"),
            (proof.cpu_s, MORE_CPU, "the cores' time"),
        )
        if figure is not None and figure.original and figure.changed >= least * figure.original
    ]
    return f"; it takes {' and '.join(more)}" if more else ""


def _times(proof: Proof) -> str:
    assert proof.ratio is not None
    ratio = proof.ratio
    return f"{units.factor(ratio.value)} (95 % between {units.factor(ratio.low)} and {units.factor(ratio.high)})"

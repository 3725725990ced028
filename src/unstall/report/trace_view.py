"""The reading of a GPU trace on one screen of a terminal: verdict, culprit, the device's time, predicted gains."""

from __future__ import annotations

import shlex

from unstall.records.report import Culprit, Finding, Report
from unstall.records.trace import TraceFacts
from unstall.records.vocabulary import UNEXPLAINED
from unstall.report import gpu_section, promise, run_markdown, run_phrases, wording
from unstall.report.device_labels import CRITICAL_PATH_KINDS, DEVICE_USES
from unstall.report.layout import Page, on_one_screen
from unstall.report.thresholds import NOTABLE_KIND, NOTABLE_OPERATOR
from unstall.text import units
from unstall.text.sanitize import sanitize_line, shorten, shorten_left

_FOLD = 0.005
_LONGEST_COMMAND = 120


def page(report: Report, width: int = 100) -> Page:
    """The report in lines of at most ``width`` cells (40 to 120), on one screen."""
    return on_one_screen(width, (6, 5, 4, 3, 2), lambda page, rows: _fill(page, report, rows))


def markdown(report: Report) -> str:
    """The report for a pull request."""
    return run_markdown.render(report)


def _fill(page: Page, report: Report, rows: int) -> None:
    page.rule("unstall trace")
    page.paragraph(headline(report), f"bold {_colour(report)}")
    _culprit(page, report.verdict)
    trace = report.trace
    if trace is not None:
        page.blank()
        _uses(page, report, trace)
        page.blank()
        _what_ifs(page, trace, rows)
    page.blank()
    page.bullets("Evidence", report.verdict.evidence[: max(rows - 1, 2)], 2)
    page.bullets("Advice", report.verdict.advice[:2], 2)
    _others(page, report)
    if trace is not None:
        page.blank()
        _tables(page, trace, rows)
    page.blank()
    page.bullets("Notes", report.run.notes[: max(rows - 2, 1)], 1)
    page.phrases("Trace", _about(report))
    page.command("Next", *_next(report))


def headline(report: Report) -> str:
    """The verdict as one sentence."""
    if report.trace is None:
        return "no verdict: the trace holds no GPU activity at all"
    return wording.headline(report)


def _colour(report: Report) -> str:
    if report.trace is None or report.verdict.confidence == "low" or report.verdict.pattern == UNEXPLAINED:
        return "yellow"
    return "green" if "useful" in report.verdict.traits else "red"


def _culprit(page: Page, verdict: Finding) -> None:
    culprit = verdict.culprit
    if culprit is None:
        return
    page.field("Culprit", _place(culprit, page.room), "bold", most=1)
    if culprit.via:
        page.field("", f"in {shorten(sanitize_line(culprit.via), page.room - 4)}", "dim", most=1)


def _place(culprit: Culprit, room: int) -> str:
    process = "" if culprit.process == "main" else f", {sanitize_line(culprit.where)}"
    share = f"({units.percent(culprit.share)} of the steps' time{process})"
    name = shorten(sanitize_line(culprit.function), 60)
    place = f"{sanitize_line(culprit.file)}:{culprit.line}" if culprit.file else ""
    place_room = room - len(share) - len(name) - 2
    return " ".join(part for part in (name, shorten_left(place, max(place_room, 12)) if place else "", share) if part)


def _uses(page: Page, report: Report, trace: TraceFacts) -> None:
    step = report.throughput.step_s
    mean = step.mean if step else 0.0
    times = run_phrases.step_times(report)[: 1 if report.run.steps == 1 else None]
    page.phrases("Device", [*times, f"busy {units.percent(trace.device['busy'])}"])
    cells = min(max(page.width - 76, 6), 24)
    shown = [(name, trace.device[name]) for name in DEVICE_USES if trace.device[name] >= _FOLD]
    for name, share in sorted(shown, key=lambda item: -item[1]):
        label, meaning = DEVICE_USES[name]
        figures = f"{units.percent(share):>7} {units.seconds(share * mean):>8}  {meaning}"
        page.bar(label, share, figures, cells, "red" if name.startswith("idle") else "blue")


def _what_ifs(page: Page, trace: TraceFacts, rows: int) -> None:
    phrases = [
        f"{sanitize_line(change.what_if)} → {promise.factor(change.gain)}" for change in trace.what_ifs[: rows + 1]
    ]
    page.phrases("What if", phrases or ["no standard what-if would gain half a per cent"])
    path = sorted(trace.critical_path.items(), key=lambda item: -item[1])
    parts = [
        f"{CRITICAL_PATH_KINDS.get(kind, kind)} {units.percent(share)}" for kind, share in path if share >= NOTABLE_KIND
    ]
    page.phrases("Critical", parts[:rows])
    named = [(name, share) for name, share in trace.critical_operators.items() if share >= NOTABLE_OPERATOR][:3]
    operators = [f"{shorten(sanitize_line(name), 40)} {units.percent(share)}" for name, share in named]
    page.phrases("", [f"by operator: {operators[0]}", *operators[1:]] if operators else [])


def _others(page: Page, report: Report) -> None:
    expected = promise.gain_line(report)
    if expected and report.verdict.ceiling is not None:  # else the headline has it
        page.field("Gain", expected)
    runners_up = [finding for finding in report.findings if finding != report.verdict and promise.first(finding)][:2]
    page.phrases("Runner-up", [", ".join((wording.subject(finding), promise.first(finding))) for finding in runners_up])


def _tables(page: Page, trace: TraceFacts, rows: int) -> None:
    if trace.ranks:
        shown = sorted(trace.ranks, key=lambda rank: -rank.late)[:rows]
        count = f"{len(shown)} of {len(trace.ranks)}" if len(shown) < len(trace.ranks) else ""
        page.table(
            "Ranks",
            (
                count,
                "step",
                "busy",
                "exposed comm.",
                "waits",
                "kept others waiting",
            ),
            [
                (
                    f"rank {rank.rank}",
                    units.seconds(rank.step_s),
                    *(units.percent(share) for share in (rank.busy, rank.communication, rank.waits, rank.late)),
                )
                for rank in shown
            ],
        )
    gpu_section.parts(page, trace, rows - 1)
    page.table(
        "Operators",
        ("", "calls/step", "a step", "share"),
        [
            (operator.name, units.number(operator.count), units.seconds(operator.mean_s), units.percent(operator.share))
            for operator in trace.operators[: rows - 1]
        ],
    )


def _about(report: Report) -> list[str]:
    info, trace = report.run, report.trace
    phrases = [f"{info.steps:,} {'step' if info.steps == 1 else 'steps'}", f"{units.seconds(info.duration_s)} in all"]
    if trace is not None:
        phrases.append(_device_names(trace))
        if kernels := trace.kernels:
            phrases.append(
                f"{units.number(kernels['per_step'])} kernels a step, mean {units.seconds(kernels['mean_s'])}"
            )
        if trace.queue:
            phrases.append(f"launch to start {units.seconds(trace.queue['launch_to_start_p50_s'])} (median)")
        phrases.append(f"replay off by {units.percent(abs(trace.replay_error))}")
    speed = report.throughput
    if units.known(speed.flops_per_s):
        phrases.append(f"at least {units.flops(speed.flops_per_s)} by recorded shapes")
    if units.known(speed.mfu):
        phrases.append(f"MFU at least {units.share(speed.mfu)}")
    return phrases


def _device_names(trace: TraceFacts) -> str:
    counts = {name: trace.devices.count(name) for name in trace.devices}
    return ", ".join(
        f"{count} × {sanitize_line(name)}" if count > 1 else sanitize_line(name) for name, count in counts.items()
    )


def _next(report: Report) -> tuple[str, str | None]:
    files = shlex.join(report.run.command)
    files = files if len(files) <= _LONGEST_COMMAND else "FILE..."
    if report.trace is None:
        return "a program on the CPU:", "unstall run PROGRAM"
    if "useful" in report.verdict.traits:
        named = [operator.name for operator in report.trace.operators if not operator.name.startswith("(")]
        top = named[0] if named else "compute"
        return "what a faster kernel would gain:", f"unstall trace {files} --what-if {shlex.quote(f'{top}=0.5x')}"
    if len(report.run.command) != 1:
        return "fix, record again, and read again:", f"unstall trace {files}"
    return "fix, record again, and compare:", f"unstall trace {files} AFTER --compare"

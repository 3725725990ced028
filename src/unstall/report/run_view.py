"""The report on one screen of a terminal: verdict, culprit, phases, ceiling and gain, next command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from rich.cells import cell_len

from unstall.records.memory import MemoryLines
from unstall.records.report import Culprit, PhaseTime, Report
from unstall.records.vocabulary import HEALTHY, UNEXPLAINED
from unstall.report import gpu_section, promise, run_markdown, run_phrases, wording
from unstall.report.layout import LABEL_CELLS, Page, on_one_screen
from unstall.report.thresholds import NOTABLE_CALLBACK
from unstall.text import units
from unstall.text.sanitize import sanitize_line, shorten, shorten_left

_WIDEST_BAR = 40
_NARROWEST_BAR = 6
_ALLOCATING_LINES = 3


class _Limits(NamedTuple):
    """How much of each section to show."""

    rows: int = 5
    notes: int = 3
    evidence: int = 4
    advice: int = 3
    bullet_lines: int = 3
    fold: float = 0.01
    gaps: bool = True


# From all there is to the least worth reading; the first that fits the screen is taken.
_LADDER = (
    _Limits(),
    _Limits(bullet_lines=2),
    _Limits(bullet_lines=2, rows=3, notes=2),
    _Limits(bullet_lines=2, rows=3, notes=2, fold=0.02, gaps=False),
    _Limits(bullet_lines=2, rows=2, notes=1, fold=0.03, gaps=False, evidence=3, advice=2),
    _Limits(bullet_lines=1, rows=2, notes=1, fold=0.03, gaps=False, evidence=3),
    _Limits(bullet_lines=1, rows=2, notes=1, evidence=2, advice=2, fold=0.05, gaps=False),
)


def page(report: Report, width: int = 100) -> Page:
    """The report in lines of at most ``width`` cells (40 to 120), on one screen."""
    return on_one_screen(width, _LADDER, lambda page, limits: _fill(page, report, limits))


def markdown(report: Report) -> str:
    """The report for a pull request."""
    return run_markdown.render(report)


def memory_lines(recordings: Mapping[Path, MemoryLines]) -> list[str]:
    """With ``--memory``: where memray's recordings are, and the lines that allocate."""
    lines = [f"  wrote {file}" for file in recordings]
    for memory in recordings.values():
        for title, group in (
            ("memory at its peak", memory.peak),
            ("memory that is never freed", memory.growth),
        ):
            if group:
                lines.append(f"  {title}, by the line that allocates it:")
                lines += [
                    f"    {units.bytes_(line.bytes):>9}  {line.function}  {wording.location(line.file, line.line)}"
                    for line in group[:_ALLOCATING_LINES]
                ]
    return lines


def _fill(page: Page, report: Report, limits: _Limits) -> None:
    sections = (
        _verdict,
        _culprit,
        _phases,
        _device,
        _figures,
        _reasons,
        _context,
        _tables,
        _next,
    )
    for section in sections:
        if limits.gaps:
            page.blank()
        section(page, report, limits)


def _verdict(page: Page, report: Report, limits: _Limits) -> None:
    page.rule("unstall attach --record" if report.run.attached else f"unstall {report.kind}")
    page.paragraph(wording.headline(report), f"bold {_verdict_colour(report)}")


def _verdict_colour(report: Report) -> str:
    if report.run.steps == 0 or report.verdict.confidence == "low" or report.verdict.pattern == UNEXPLAINED:
        return "yellow"
    return "green" if report.verdict.pattern == HEALTHY else "red"


def _culprit(page: Page, report: Report, limits: _Limits) -> None:
    culprit = report.verdict.culprit
    if culprit is None:
        return
    share = wording.culprit_share(report.verdict)
    for i, line in enumerate(_culprit_place(culprit, share, page.room)):
        page.field("Culprit" if i == 0 else "", line, "bold", most=1)
    if culprit.code:
        page.field("", shorten(f"> {sanitize_line(culprit.code)}", page.room), most=1)
    called_by = wording.called_by(culprit)
    if called_by:
        page.field("", called_by, most=2)
    if culprit.via:
        page.field("", f"in the call of {sanitize_line(culprit.via)}", "dim", most=1)


def _culprit_place(culprit: Culprit, share: str, room: int) -> list[str]:
    """Function, file:line and share; on one line if they fit, the place on its own if not."""
    *named, place = wording.name_and_place(culprit)
    name = "".join(named)
    share = share and f"({share})"
    line = " ".join(part for part in (name, place, share) if part)
    if cell_len(line) <= room:
        return [line]
    first = " ".join(part for part in (name, share) if part)
    return [*([shorten(first, room)] if first else []), shorten_left(place, room)]


def _phases(page: Page, report: Report, limits: _Limits) -> None:
    shown, folded = run_phrases.phases(report, limits.fold)
    if not shown:
        return
    page.phrases("Step", run_phrases.step_times(report))
    notes = {phase.name: run_phrases.phase_note(phase) for phase in shown}
    columns = LABEL_CELLS + 1 + cell_len(_phase_figures(shown[0])) + 2
    room = page.width - columns - max(map(cell_len, notes.values()))
    cells = min(max(room, _NARROWEST_BAR), _WIDEST_BAR)
    blamed = report.verdict.phases
    for phase in shown:
        figures = f"{_phase_figures(phase)}  {notes[phase.name]}".rstrip()
        style = _verdict_colour(report) if phase.name in blamed else "blue"
        page.bar(phase.name, phase.share, figures, cells, style)
    if folded:
        share = sum(phase.share for phase in folded)
        mean = sum(phase.mean_s for phase in folded)
        names = ", ".join(sanitize_line(phase.name) for phase in folded)
        page.bar("the rest", share, f"{_columns(share, mean)}  {names}", cells, "blue")


def _phase_figures(phase: PhaseTime) -> str:
    return _columns(phase.share, phase.mean_s)


def _columns(share: float, mean_s: float) -> str:
    return f"{units.percent(share):>7} {units.seconds(mean_s):>8}"


def _device(page: Page, report: Report, limits: _Limits) -> None:
    gpu_section.add(page, report, limits.rows)


def _figures(page: Page, report: Report, limits: _Limits) -> None:
    for label, promised in (("Ceiling", promise.ceiling_line(report)), ("Gain", promise.gain_line(report))):
        if promised:
            page.field(label, promised)
    page.phrases("Speed", run_phrases.throughput(report))
    page.phrases("Request", run_phrases.generation(report))
    page.phrases("Machine", run_phrases.utilization(report))


def _reasons(page: Page, report: Report, limits: _Limits) -> None:
    verdict = report.verdict
    advice = verdict.advice[1:] if report.run.steps == 0 else verdict.advice
    page.bullets("Evidence", verdict.evidence[: limits.evidence], limits.bullet_lines)
    page.bullets("Advice", advice[: limits.advice], limits.bullet_lines)
    runner_up = wording.runner_up_line(report)
    if runner_up:
        page.field("Runner-up", runner_up, most=limits.bullet_lines)


def _context(page: Page, report: Report, limits: _Limits) -> None:
    notes = report.run.notes[1:] if report.run.steps == 0 else report.run.notes
    page.bullets("Notes", notes[: limits.notes], limits.bullet_lines)
    page.phrases("Run", run_phrases.run(report))
    page.phrases("Gaps", run_phrases.startup(report))


def _tables(page: Page, report: Report, limits: _Limits) -> None:
    ranks = run_phrases.ranks(report, limits.rows)
    if ranks:
        page.table("Ranks", ("", *run_phrases.RANK_COLUMNS), ranks)
        page.phrases("", run_phrases.skew(report))
    nodes = run_phrases.nodes(report, limits.rows)
    if nodes:
        page.table("Nodes", ("", *run_phrases.NODE_COLUMNS), nodes)
    modules = sorted(report.modules, key=lambda module: -module.self_s)[: limits.rows]
    if modules:
        page.table(
            "Modules",
            ("", "type", "calls/step", "own", "total"),
            [
                (
                    m.name or "(root)",
                    shorten(sanitize_line(m.type), page.room // 4),
                    units.number(m.calls_per_step),
                    units.seconds(m.self_s),
                    units.seconds(m.forward_s),
                )
                for m in modules
            ],
        )
    callbacks = run_phrases.callbacks(report, NOTABLE_CALLBACK)[: limits.rows]
    if callbacks:
        rows = [(*figures, shorten_left(place, page.room // 3)) for *figures, place in callbacks]
        page.table("Callbacks", ("", *run_phrases.CALLBACK_COLUMNS), rows, align="lrrrrl")
    compiled = run_phrases.compiled(report)[: limits.rows]
    if compiled:
        page.bullets("Compiled", [f"{place}: {why}" for *_, place, why in compiled], limits.bullet_lines)
    spans = sorted(report.spans, key=lambda span: -span.total_s)[: limits.rows]
    if spans:
        page.table(
            "Spans",
            ("", "count", "mean", "total"),
            [(s.name, f"{s.count:,}", units.seconds(s.mean_s), units.seconds(s.total_s)) for s in spans],
        )


def _next(page: Page, report: Report, limits: _Limits) -> None:
    page.command("Next", *wording.next_command(report))

"""What experiments found, on a screen: the verdict, a picture of the ceilings, and the table of experiments."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import set_cell_size
from rich.text import Text

from unstall.records.experiments import Ceiling, ReportedExperiment, Study
from unstall.records.report import Report
from unstall.report import experiment_phrases, promise, run_markdown, wording
from unstall.report.layout import Page, blocks
from unstall.report.thresholds import LARGE_GAP, SOME_GAP, UNKNOWN
from unstall.text import units
from unstall.text.sanitize import shorten

_NAME_CELLS = 34
_FIGURE_CELLS = 36
_LEAST_BAR, _MOST_BAR = 8, 40
_MOST_CEILINGS = 10
_MOST_NOTES = 6


def page(report: Report, width: int = 100) -> Page:
    """The verdict, a picture of the ceilings, and every experiment, for a terminal of ``width`` cells."""
    page = Page.fitting(width, narrowest=60)
    page.rule("unstall simplify")
    page.paragraph(wording.headline(report), "bold")
    culprit = report.verdict.culprit
    if culprit is not None:
        page.blank()
        page.field("Culprit", "  ".join(wording.name_and_place(culprit)), "bold", most=2)
    study = report.study
    if study is None:
        page.blank()
        page.bullets("Notes", report.run.notes, 3)
        return page
    page.blank()
    _picture(page, report, study)
    page.blank()
    _table(page, report.experiments)
    page.blank()
    _summary(page, report, study)
    return page


def markdown(report: Report) -> str:
    """The report for a pull request."""
    return run_markdown.render(report)


def _picture(page: Page, report: Report, study: Study) -> None:
    """Steps a second as it is, and with each component free, as bars of one scale."""
    shown = [ceiling for ceiling in report.ceilings if ceiling.known_by == "measured"][:_MOST_CEILINGS]
    if not shown:
        return
    baseline = Ceiling(component="as it is", steps_per_s=1 / study.base_s, known_by="measured")
    most = max(ceiling.steps_per_s for ceiling in [*shown, baseline])
    cells = min(max(page.room - _NAME_CELLS - _FIGURE_CELLS, _LEAST_BAR), _MOST_BAR)
    rows, styles = [], []
    for ceiling in [baseline, *shown]:
        styles.append(_colour(ceiling.gap))
        between = f"{units.number(ceiling.ci95[0])} to {units.number(ceiling.ci95[1])}" if ceiling.ci95 else ""
        gap = units.percent(ceiling.gap) if ceiling.gap is not None else ""
        bar = set_cell_size(blocks(ceiling.steps_per_s / most, cells), cells)
        rows.append(
            (shorten(ceiling.component, _NAME_CELLS), Text(bar), units.number(ceiling.steps_per_s), between, gap)
        )
    page.table("Ceilings", ("steps/s, measured", "", "", "95 %", "gap"), rows, styles, "llrrr")


def _colour(gap: float | None) -> str:
    """Of a row: the more the program would gain, the warmer. The figure beside it says the same without colour."""
    if gap is None:
        return "bold"
    return "red" if gap >= LARGE_GAP else "yellow" if gap >= SOME_GAP else "green"


def _table(page: Page, experiments: Sequence[ReportedExperiment]) -> None:
    rows = []
    for number, trial in enumerate(experiments, 1):
        low, high = trial.ci95
        predicted = f"{trial.predicted_ratio:.2f}×" if trial.predicted_ratio is not None else ""
        slope = f"{trial.elasticity:.2f}" if trial.elasticity is not None else ""
        result = f"{trial.ratio:.2f}×" if trial.conclusive else "inconclusive"
        between = f"{low:.2f} to {high:.2f}" if high < UNKNOWN else "unknown"
        rows.append((shorten(f"{number:2} {trial.name}", 44), result, between, predicted, slope))
    if rows:
        page.table("Tried", ("in this order", "speed-up", "95 %", "predicted", "elasticity"), rows)
    page.bullets("", [f"{trial.name}: {note}" for trial in experiments for note in trial.notes][:_MOST_NOTES], 3)


def _summary(page: Page, report: Report, study: Study) -> None:
    *facts, sandbox = experiment_phrases.summary(study)
    for label, phrase in facts:
        page.field(label, phrase)
    expected = promise.gain_line(report)
    if expected:
        page.field("Gain", expected)
    page.bullets("Deeper", study.deeper, 2)
    page.bullets("Disagree", study.disagreements, 4)
    page.bullets("Evidence", report.verdict.evidence[:3], 3)
    page.bullets("Advice", report.verdict.advice[:2], 2)
    page.bullets("Failed", [f"{failure.name}: {failure.why}" for failure in study.failures], 2)
    if study.untried:
        page.field("Not tried", f"{len(study.untried)} more, the budget was spent: {', '.join(study.untried)}", most=3)
    page.bullets("Notes", report.run.notes[:4], 3)
    page.field(*sandbox)

"""Two traces compared, on one screen of a terminal."""

from __future__ import annotations

import re

from unstall.records.trace import TraceChanged, TraceComparison
from unstall.report.device_labels import DEVICE_USES
from unstall.report.layout import Page
from unstall.report.markdown import MarkdownPage
from unstall.report.thresholds import COMPARED_CHANGE, SAME
from unstall.text import units
from unstall.text.sanitize import sanitize_line

_ROWS = 8
_NAMESPACES = re.compile(r"^void |\b(?:at::native|at|c10|std|cutlass)::|\(anonymous namespace\)::")


def page(comparison: TraceComparison, width: int = 100) -> Page:
    """The comparison for a terminal of ``width`` cells."""
    return _fill(Page.fitting(width), comparison)


def markdown(comparison: TraceComparison) -> str:
    """The comparison for a pull request."""
    return _fill(MarkdownPage(), comparison).as_text()


def _fill(page: Page, comparison: TraceComparison) -> Page:
    page.rule("unstall trace --compare")
    page.paragraph(headline(comparison), f"bold {'green' if comparison.ratio >= 1 else 'red'}")
    page.blank()
    page.field(
        "Before",
        f"{sanitize_line(comparison.files[0])}: {units.seconds(comparison.step_s[0])} a step, {comparison.verdicts[0]}",
    )
    page.field(
        "After",
        f"{sanitize_line(comparison.files[1])}: {units.seconds(comparison.step_s[1])} a step, {comparison.verdicts[1]}",
    )
    if not comparison.marked_steps:
        page.field("Mind", "steps are not marked in both traces, so each whole trace counts as one step")
    for label, changes in (
        ("Device", comparison.uses),
        ("Operators", comparison.operators),
        ("Kernels", comparison.kernels),
    ):
        least = COMPARED_CHANGE * comparison.step_s[0]
        shown = [change for change in changes if abs(change.after_s - change.before_s) >= least]
        shown.sort(key=lambda change: -abs(change.after_s - change.before_s))
        if shown:
            page.blank()
            page.table(label, ("", "before", "after", "change"), [_row(change) for change in shown[:_ROWS]])
    return page


def headline(comparison: TraceComparison) -> str:
    """The change of the step in one sentence."""
    times = " → ".join(map(units.seconds, comparison.step_s))
    factor = max(comparison.ratio, 1 / comparison.ratio)
    if factor < SAME:
        return f"a step takes as long as before, {times}"
    largest = max(comparison.uses, key=lambda change: abs(change.after_s - change.before_s))
    label, meaning = DEVICE_USES[largest.name]
    return (
        f"a step is {units.factor(factor)} {'faster' if comparison.ratio >= 1 else 'slower'}, {times}; "
        f"the largest change is {label} ({meaning}), {_change(largest)}"
    )


def _row(change: TraceChanged) -> tuple[str, ...]:
    return _name(change), units.seconds(change.before_s), units.seconds(change.after_s), _change(change)


def _name(change: TraceChanged) -> str:
    """Of a use of the device its label, of a kernel what tells it from others."""
    return DEVICE_USES[change.name][0] if change.name in DEVICE_USES else _NAMESPACES.sub("", change.name)


def _change(change: TraceChanged) -> str:
    difference = change.after_s - change.before_s
    return f"{'+' if difference > 0 else '-'}{units.seconds(abs(difference))}"

"""Two traces compared, on one screen of a terminal."""

from __future__ import annotations

import re

from unstall.records.trace import TraceChanged, TraceComparison
from unstall.report.device_words import USES
from unstall.report.layout import Page
from unstall.report.markdown import MarkdownPage
from unstall.text import units
from unstall.text.sanitize import plain

_ROWS = 8
_NAMESPACES = re.compile(r"^void |\b(?:at::native|at|c10|std|cutlass)::|\(anonymous namespace\)::")
_SAME = 1.005  # of the step: a smaller change is none
_LEAST_SHARE = 0.002  # of the step before: a smaller change is not shown


def page(found: TraceComparison, width: int = 100) -> Page:
    """The comparison for a terminal of ``width`` cells."""
    return _fill(Page.fitting(width), found)


def markdown(found: TraceComparison) -> str:
    """The comparison for a pull request."""
    return _fill(MarkdownPage(), found).as_text()


def _fill(page: Page, found: TraceComparison) -> Page:
    page.rule("unstall trace --compare")
    page.paragraph(headline(found), f"bold {'green' if found.ratio >= 1 else 'red'}")
    page.blank()
    page.field("Before", f"{plain(found.files[0])}: {units.seconds(found.step_s[0])} a step, {found.verdicts[0]}")
    page.field("After", f"{plain(found.files[1])}: {units.seconds(found.step_s[1])} a step, {found.verdicts[1]}")
    if not found.marked_steps:
        page.field(
            "Mind", "steps are not marked in both: all of a trace counts as one step, however long it was recorded"
        )
    for label, changes in (("Device", found.uses), ("Operators", found.operators), ("Kernels", found.kernels)):
        least = _LEAST_SHARE * found.step_s[0]
        shown = [one for one in changes if abs(one.after_s - one.before_s) >= least]
        shown.sort(key=lambda one: -abs(one.after_s - one.before_s))
        if shown:
            page.blank()
            page.table(label, ("", "before", "after", "change"), [_row(one) for one in shown[:_ROWS]])
    return page


def headline(found: TraceComparison) -> str:
    """The change of the step in one sentence."""
    times = " → ".join(map(units.seconds, found.step_s))
    factor = max(found.ratio, 1 / found.ratio)
    if factor < _SAME:
        return f"a step takes as long as before, {times}"
    largest = max(found.uses, key=lambda one: abs(one.after_s - one.before_s))
    label, meaning = USES[largest.name]
    return (
        f"a step is {units.factor(factor)} {'faster' if found.ratio >= 1 else 'slower'}, {times}; "
        f"the largest change is {label} ({meaning}), {_change(largest)}"
    )


def _row(one: TraceChanged) -> tuple[str, ...]:
    return _name(one), units.seconds(one.before_s), units.seconds(one.after_s), _change(one)


def _name(one: TraceChanged) -> str:
    """Of a use of the device its label, of a kernel what tells it from others."""
    return USES[one.name][0] if one.name in USES else _NAMESPACES.sub("", one.name)


def _change(one: TraceChanged) -> str:
    difference = one.after_s - one.before_s
    return f"{'+' if difference > 0 else '-'}{units.seconds(abs(difference))}"

"""The answer of ``unstall what-if`` on a terminal."""

from __future__ import annotations

import math

from unstall.records.what_if import WhatIf, WhatIfReport
from unstall.report.layout import Page
from unstall.report.markdown import MarkdownPage
from unstall.text import units
from unstall.text.sanitize import plain

_FASTER = 1.03  # below it, a gain is none to speak of


def page(report: WhatIfReport, width: int = 100) -> Page:
    """The predictions for a terminal of ``width`` cells."""
    return _fill(Page.fitting(width, narrowest=60), report)


def markdown(report: WhatIfReport) -> str:
    """The predictions for a pull request."""
    return _fill(MarkdownPage(), report).as_text()


def _fill(page: Page, report: WhatIfReport) -> Page:
    page.rule("unstall what-if")
    if len(report.answers) == 1:
        _one(page, report, report.answers[0])
    else:
        _survey(page, report)
    if report.elasticities:
        _elasticities(page, report)
    page.bullets("Note", report.notes, 2)
    return page


def _one(page: Page, report: WhatIfReport, found: WhatIf) -> None:
    page.paragraph(headline(found), "bold green" if found.speedup > _FASTER else "bold yellow")
    page.field("What if", found.changes)
    page.phrases(
        "Step",
        [
            f"recorded {units.seconds(report.recorded_step_s)}",
            f"predicted {units.seconds(found.step_s)}",
            f"nine of ten in {units.seconds(found.low)} to {units.seconds(found.high)}",
            units.rate(1 / found.step_s if found.step_s else math.inf, "steps"),
        ],
    )
    page.phrases("Busy", [f"{name} {units.percent(share)}" for name, share in found.utilisation.items()])
    page.field("Limited by", f"{found.bottleneck}; no step can be below {units.seconds(found.limit_s)} then")


def _survey(page: Page, report: WhatIfReport) -> None:
    page.paragraph(f"A step was recorded at {units.seconds(report.recorded_step_s)}. What would change it:", "bold")
    rows = [
        (
            found.changes,
            units.seconds(found.step_s),
            units.factor(found.speedup),
            f"{units.number(found.speedup_low)} to {units.number(found.speedup_high)}",
            found.bottleneck,
        )
        for found in report.answers
    ]
    page.table("", ("change", "step", "speed-up", "nine of ten in", "then limited by"), rows)


def _elasticities(page: Page, report: WhatIfReport) -> None:
    ordered = sorted(report.elasticities.items(), key=lambda item: -abs(item[1]))
    phrases = [f"{plain(name)} {value:.2f}" for name, value in ordered if abs(value) >= 0.005]
    page.phrases("Matters", [*phrases, f"sum {sum(report.elasticities.values()):.2f}"])


def headline(found: WhatIf) -> str:
    """The answer in one sentence."""
    if not found.step_s:
        return "Nothing is left of the step: all that was recorded in it is free"
    interval = f"{units.factor(found.speedup_low)} to {units.factor(found.speedup_high)}"
    if found.speedup_low <= 1 <= found.speedup_high and abs(found.speedup - 1) < _FASTER - 1:
        return f"No gain to speak of: {units.factor(found.speedup)} as fast, predicted ({interval})"
    if found.speedup < 1:
        return f"Slower: {units.factor(found.speedup)} as fast, predicted ({interval})"
    return f"{units.factor(found.speedup)} as fast, predicted ({interval})"

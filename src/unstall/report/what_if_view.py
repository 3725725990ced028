"""The answer of ``unstall what-if`` on a terminal."""

from __future__ import annotations

import math

from unstall.records.what_if import WhatIf, WhatIfReport
from unstall.report.layout import Page
from unstall.report.markdown import MarkdownPage
from unstall.report.thresholds import FASTER, SHOWN_AS_ZERO
from unstall.text import units
from unstall.text.sanitize import sanitize_line


def page(report: WhatIfReport, width: int = 100) -> Page:
    """The predictions for a terminal of ``width`` cells."""
    return _fill(Page.fitting(width, narrowest=60), report)


def markdown(report: WhatIfReport) -> str:
    """The predictions for a pull request."""
    return _fill(MarkdownPage(), report).as_text()


def _fill(page: Page, report: WhatIfReport) -> Page:
    page.rule("unstall what-if")
    if len(report.answers) == 1:
        _prediction(page, report, report.answers[0])
    else:
        _survey(page, report)
    if report.elasticities:
        _elasticities(page, report)
    page.bullets("Note", report.notes, 2)
    return page


def _prediction(page: Page, report: WhatIfReport, answer: WhatIf) -> None:
    page.paragraph(headline(answer), "bold green" if answer.speedup > FASTER else "bold yellow")
    page.field("What if", answer.changes)
    page.phrases(
        "Step",
        [
            f"recorded {units.seconds(report.recorded_step_s)}",
            f"predicted {units.seconds(answer.step_s)}",
            f"90 % interval {units.seconds(answer.low)} to {units.seconds(answer.high)}",
            units.rate(1 / answer.step_s if answer.step_s else math.inf, "steps"),
        ],
    )
    page.phrases("Busy", [f"{name} {units.percent(share)}" for name, share in answer.utilisation.items()])
    page.field("Limited by", f"{answer.bottleneck}; a step then takes at least {units.seconds(answer.limit_s)}")


def _survey(page: Page, report: WhatIfReport) -> None:
    page.paragraph(f"The recorded step takes {units.seconds(report.recorded_step_s)}. What would change it:", "bold")
    rows = [
        (
            answer.changes,
            units.seconds(answer.step_s),
            units.factor(answer.speedup),
            f"{units.number(answer.speedup_low)} to {units.number(answer.speedup_high)}",
            answer.bottleneck,
        )
        for answer in report.answers
    ]
    page.table("", ("change", "step", "speed-up", "90 % interval", "then limited by"), rows)


def _elasticities(page: Page, report: WhatIfReport) -> None:
    ordered = sorted(report.elasticities.items(), key=lambda item: -abs(item[1]))
    phrases = [f"{sanitize_line(name)} {value:.2f}" for name, value in ordered if abs(value) >= SHOWN_AS_ZERO]
    page.phrases("Matters", [*phrases, f"sum {sum(report.elasticities.values()):.2f}"])


def headline(answer: WhatIf) -> str:
    """The answer in one sentence."""
    if not answer.step_s:
        return "Nothing is left of the step: everything recorded in it is free"
    interval = f"{units.factor(answer.speedup_low)} to {units.factor(answer.speedup_high)}"
    if answer.speedup_low <= 1 <= answer.speedup_high and abs(answer.speedup - 1) < FASTER - 1:
        return f"No gain to speak of: {units.factor(answer.speedup)} as fast, predicted ({interval})"
    if answer.speedup < 1:
        return f"Slower: {units.factor(answer.speedup)} as fast, predicted ({interval})"
    return f"{units.factor(answer.speedup)} as fast, predicted ({interval})"

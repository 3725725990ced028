"""What was found by experiment: the ceilings as a picture, each trial with its interval, and what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unstall.records.report import Ceiling, Experiment, Report, Study
from unstall.report import study as phrases
from unstall.report.html.markup import Markup, el
from unstall.report.html.tables import MOST_ROWS, left, table, width, with_interval
from unstall.text import units

_WIDEST_SCALE = 8.0  # times the program's own speed: a bar that is longer is cut, lest the others vanish


def ceilings(report: Report) -> Markup | None:
    """Steps per second if a component were free, beside what the program reaches."""
    if not report.ceilings:
        return None
    actual = phrases.speed(report)
    most = _scale([ceiling.steps_per_s for ceiling in report.ceilings], actual)
    rows: list[tuple[Any, ...]] = [
        (
            ceiling.component,
            _gain(ceiling, actual, most),
            with_interval(units.rate(ceiling.steps_per_s, "steps"), _told(ceiling.ci95, actual)),
            units.percent(ceiling.gap) if units.known(ceiling.gap) else "",
            ceiling.known_by,
        )
        for ceiling in sorted(report.ceilings, key=lambda one: -one.steps_per_s)
    ]
    if units.known(actual):
        now = el("span", el("span", class_=f"{width(actual / most)} now"), class_="bar", aria_hidden="true")
        rows.append((el("strong", "as it is"), now, units.rate(actual, "steps"), "", "measured"))
    caption = "If this component alone were free: what is reached as it is, then the gain; line: 95 % interval"
    return el(
        "section",
        el("h2", "Ceilings and gaps"),
        table(("component free", "", ">steps/s", ">gap", "known by"), rows, caption=caption, bars=True),
        id="ceilings",
    )


def experiments(report: Report) -> Markup | None:
    """How many times as fast the program was with each intervention, in the order they were tried."""
    tried, study = report.experiments, report.study
    if not tried and study is None:
        return None
    return el(
        "section",
        el("h2", "Experiments"),
        _trials(tried) if tried else None,
        _items(phrases.notes(tried), class_="notes"),
        _together(study) if study else None,
        id="experiments",
    )


def _trials(tried: Sequence[Experiment]) -> Markup:
    ends = [end for one in tried for end in (one.ratio, *(_told(one.ci95) or ()))]
    most = 1.08 * _scale([*ends, 1.0], 1.0)
    rows = [
        (
            el("span", el("small", f"{number} "), one.name, el("small", one.intervention, class_="under")),
            _whisker(one, most),
            with_interval(phrases.result(one), _told(one.ci95)),
            units.factor(one.predicted_ratio) if units.known(one.predicted_ratio) else "",
            units.number(one.elasticity) if units.known(one.elasticity) else "",
            str(one.segments) if one.segments else "",
        )
        for number, one in enumerate(tried, 1)
    ]
    header = ("tried, in this order", "", ">times as fast", ">predicted", ">elasticity", ">segments")
    caption = "Step time without the intervention over that with it, 95 % interval; over 1 it is faster with it"
    return table(header, rows, caption=caption, bars=True)


def _together(study: Study) -> list[Markup | None]:
    """What the experiments say together, what has no result and why, and what was not tried."""
    facts = [el("div", el("dt", label), el("dd", told)) for label, told in phrases.facts(study)]
    lists = (
        ("Where observation and experiment disagree", study.disagreements),
        ("Once the first bottleneck is gone", study.deeper),
        ("Without a result", phrases.failures(study)),
    )
    told = [el("div", el("h3", title), _items(items)) for title, items in lists if items]
    untried = el("summary", el("strong", "Not tried, the budget was spent"), f" · {len(study.untried)}")
    return [
        el("dl", facts, class_="facts study"),
        el("div", told, class_="columns study") if told else None,
        el("details", untried, _items(study.untried)) if study.untried else None,
    ]


def _items(items: Sequence[str], **attributes: Any) -> Markup | None:
    return el("ul", [el("li", item) for item in items[:MOST_ROWS]], **attributes) if items else None


def _gain(ceiling: Ceiling, actual: float | None, most: float) -> Markup | None:
    """The bar of a ceiling: what is reached already, and what this component takes."""
    speed = ceiling.steps_per_s
    if not units.known(speed) or most <= 0:
        return None
    reached = min(actual, speed) / most if units.known(actual) else 0.0
    return el(
        "span",
        el("span", class_=f"{width(speed / most)} gain{' cut' if speed > most else ''}"),
        el("span", class_=f"{width(reached)} now"),
        _range(_told(ceiling.ci95, actual), most),
        class_="bar",
        aria_hidden="true",
    )


def _whisker(one: Experiment, most: float) -> Markup | None:
    """An interval on a line from nothing to ``most``, with a mark at 1: no change."""
    if not units.known(one.ratio) or most <= 0:
        return None
    return el(
        "span",
        el("span", class_=f"{left(1 / most)} one"),
        _range(_told(one.ci95), most),
        el("span", class_=f"{left(one.ratio / most)} dot") if one.conclusive else None,
        class_="whisker",
        aria_hidden="true",
    )


def _range(interval: tuple[float, float] | None, most: float) -> Markup | None:
    if interval is None:
        return None
    low, high = (min(max(end / most, 0.0), 1.0) for end in interval)
    return el("span", class_=f"{left(low)} {width(high - low)} range")


def _told(interval: tuple[float, float] | None, unit: float | None = 1.0) -> tuple[float, float] | None:
    """An interval in multiples of ``unit``, none where it is as good as open."""
    if interval is None or not units.known(unit) or unit <= 0:
        return None
    return interval if phrases.bounded((interval[0] / unit, interval[1] / unit)) else None


def _scale(values: Sequence[float], actual: float | None) -> float:
    """What fills a bar: the largest, or several times what there is now if that is less."""
    largest = max([value for value in values if units.known(value) and value > 0], default=1.0)
    return min(largest, _WIDEST_SCALE * actual) if units.known(actual) and actual > 0 else largest

"""What was found by experiment: the ceilings as a picture, each trial with its interval, and what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from unstall.records.report import Ceiling, Experiment, Report
from unstall.report import study as phrases
from unstall.report.html.markup import Markup, render
from unstall.report.html.tables import Table
from unstall.text import units

_WIDEST_SCALE = 8.0  # times the program's own speed: a bar that is longer is cut, lest the others vanish


class Interval(NamedTuple):
    """Where an interval begins and ends, as shares of a bar's width."""

    low: float
    high: float


class Bar(NamedTuple):
    """A ceiling as shares of a bar's width."""

    reached: float
    """As the program is."""
    ceiling: float | None = None
    interval: Interval | None = None
    cut: bool = False
    """Whether the ceiling is higher than the bar is wide."""


class Whisker(NamedTuple):
    """A trial's ratio as shares of a line's width."""

    unchanged: float
    """Where the ratio is 1."""
    ratio: float | None
    """None where noise could explain it."""
    interval: Interval | None


class Trial(NamedTuple):
    """What was tried."""

    number: int
    name: str
    intervention: str


def ceilings(report: Report) -> Markup | None:
    """Steps per second if a component were free, beside what the program reaches."""
    if not report.ceilings:
        return None
    actual = phrases.speed(report)
    most = _scale([ceiling.steps_per_s for ceiling in report.ceilings], actual)
    rows: list[tuple[Any, ...]] = [
        (
            ceiling.component,
            _bar(ceiling, actual, most),
            (units.rate(ceiling.steps_per_s, "steps"), _telling(ceiling.ci95, actual)),
            units.percent(ceiling.gap) if units.known(ceiling.gap) else "",
            ceiling.known_by,
        )
        for ceiling in sorted(report.ceilings, key=lambda ceiling: -ceiling.steps_per_s)
    ]
    if units.known(actual):
        name = Markup("<strong>as it is</strong>")
        rows.append((name, Bar(reached=actual / most), units.rate(actual, "steps"), "", "measured"))
    caption = "If this component alone were free: what is reached as it is, then the gain; line: 95 % interval"
    return render(
        "ceilings.html", ceilings=Table(caption, ("component free", "", ">steps/s", ">gap", "known by"), rows)
    )


def experiments(report: Report) -> Markup | None:
    """How many times as fast the program was with each intervention, in the order they were tried."""
    tried, study = report.experiments, report.study
    if not tried and study is None:
        return None
    return render(
        "experiments.html",
        trials=_trials(tried),
        notes=phrases.notes(tried),
        study=study,
        facts=phrases.facts(study) if study else [],
        failures=phrases.failures(study) if study else [],
    )


def _trials(tried: Sequence[Experiment]) -> Table:
    ends = [end for trial in tried for end in (trial.ratio, *(_telling(trial.ci95) or ()))]
    most = 1.08 * _scale([*ends, 1.0], 1.0)
    rows = [
        (
            Trial(number, trial.name, trial.intervention),
            _whisker(trial, most),
            (phrases.result(trial), _telling(trial.ci95)),
            units.factor(trial.predicted_ratio) if units.known(trial.predicted_ratio) else "",
            units.number(trial.elasticity) if units.known(trial.elasticity) else "",
            str(trial.segments) if trial.segments else "",
        )
        for number, trial in enumerate(tried, 1)
    ]
    header = ("tried, in this order", "", ">times as fast", ">predicted", ">elasticity", ">segments")
    caption = "Step time without the intervention over that with it, 95 % interval; over 1 it is faster with it"
    return Table(caption, header, rows)


def _bar(ceiling: Ceiling, actual: float | None, most: float) -> Bar | None:
    """The bar of a ceiling: what is reached already, and what this component takes."""
    speed = ceiling.steps_per_s
    if not units.known(speed) or most <= 0:
        return None
    reached = min(actual, speed) / most if units.known(actual) else 0.0
    return Bar(reached, speed / most, _interval(_telling(ceiling.ci95, actual), most), cut=speed > most)


def _whisker(trial: Experiment, most: float) -> Whisker | None:
    """An interval on a line from nothing to ``most``, with a mark at 1: no change."""
    if not units.known(trial.ratio) or most <= 0:
        return None
    ratio = trial.ratio / most if trial.conclusive else None
    return Whisker(1 / most, ratio, _interval(_telling(trial.ci95), most))


def _interval(interval: tuple[float, float] | None, most: float) -> Interval | None:
    return Interval(*(min(max(end / most, 0.0), 1.0) for end in interval)) if interval else None


def _telling(interval: tuple[float, float] | None, unit: float | None = 1.0) -> tuple[float, float] | None:
    """The interval, unless its ends in multiples of ``unit`` say nothing."""
    if interval is None or not units.known(unit) or unit <= 0:
        return None
    return interval if phrases.bounded((interval[0] / unit, interval[1] / unit)) else None


def _scale(values: Sequence[float], actual: float | None) -> float:
    """What fills a bar: the largest, or several times what there is now if that is less."""
    largest = max([value for value in values if units.known(value) and value > 0], default=1.0)
    return min(largest, _WIDEST_SCALE * actual) if units.known(actual) and actual > 0 else largest

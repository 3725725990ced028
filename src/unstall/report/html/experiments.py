"""What was found by experiment: the ceilings as a picture, each trial with its interval, and what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unstall.records.experiments import ReportedExperiment
from unstall.records.report import Report
from unstall.report import experiment_phrases
from unstall.report.html.markup import render
from unstall.report.html.tables import Table
from unstall.report.templating import Markup
from unstall.text import units

_WIDEST_SCALE = 8.0  # times the program's own speed: a bar that is longer is cut, lest the others vanish


def ceilings(report: Report) -> Markup | None:
    """Steps per second if a component were free, beside what the program reaches."""
    if not report.ceilings:
        return None
    actual = experiment_phrases.baseline_speed(report)
    rows: list[tuple[Any, ...]] = []
    for ceiling in sorted(report.ceilings, key=lambda ceiling: -ceiling.steps_per_s):
        speed, interval = ceiling.steps_per_s, _telling(ceiling.ci95, actual)
        reached = min(actual, speed) if units.known(actual) else 0.0
        gap = units.percent(ceiling.gap) if units.known(ceiling.gap) else ""
        bar = (reached, speed, interval) if units.known(speed) else None
        rows.append((ceiling.component, bar, (units.rate(speed, "steps"), interval), gap, ceiling.known_by))
    if units.known(actual):
        name = Markup("<strong>as it is</strong>")
        rows.append((name, (actual, None, None), units.rate(actual, "steps"), "", "measured"))
    caption = "If this component alone were free: what is reached as it is, then the gain; line: 95 % interval"
    table = Table(caption, ("component free", "", ">steps/s", ">gap", "known by"), rows)
    return render("ceilings.html", table=table, most=_scale([c.steps_per_s for c in report.ceilings], actual))


def experiments(report: Report) -> Markup | None:
    """How many times as fast the program was with each intervention, in the order they were tried."""
    trials, study = report.experiments, report.study
    if not trials and study is None:
        return None
    ends = [end for trial in trials for end in (trial.ratio, *(_telling(trial.ci95) or ()))]
    return render(
        "experiments.html",
        trials=_trials(trials),
        most=1.08 * _scale([*ends, 1.0], 1.0),
        notes=experiment_phrases.notes(trials),
        study=study,
        facts=experiment_phrases.summary(study) if study else [],
        failures=experiment_phrases.failures(study) if study else [],
    )


def _trials(trials: Sequence[ReportedExperiment]) -> Table:
    rows = [
        (
            (number, trial),
            (trial, _telling(trial.ci95)) if units.known(trial.ratio) else None,
            (experiment_phrases.result(trial), _telling(trial.ci95)),
            units.factor(trial.predicted_ratio) if units.known(trial.predicted_ratio) else "",
            units.number(trial.elasticity) if units.known(trial.elasticity) else "",
            str(trial.segments) if trial.segments else "",
        )
        for number, trial in enumerate(trials, 1)
    ]
    header = ("tried, in this order", "", ">times as fast", ">predicted", ">elasticity", ">segments")
    caption = "Step time without the intervention over that with it, 95 % interval; over 1 it is faster with it"
    return Table(caption, header, rows)


def _telling(interval: tuple[float, float] | None, unit: float | None = 1.0) -> tuple[float, float] | None:
    """The interval, unless its ends in multiples of ``unit`` say nothing."""
    if interval is None or not units.known(unit) or unit <= 0:
        return None
    return interval if experiment_phrases.bounded((interval[0] / unit, interval[1] / unit)) else None


def _scale(values: Sequence[float], actual: float | None) -> float:
    """What fills a bar: the largest, or several times what there is now if that is less."""
    largest = max([value for value in values if units.known(value) and value > 0], default=1.0)
    return min(largest, _WIDEST_SCALE * actual) if units.known(actual) and actual > 0 else largest

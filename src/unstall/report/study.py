"""What experiments say, as phrases: the same on the page and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from unstall.records.report import Experiment, Report, Study
from unstall.text import units

_OPEN = 1e4  # times as fast: from an interval that ends beyond, nothing can be read


def speed(report: Report) -> float | None:
    """Steps a second as the program is: in the experiments where there are any, as ceilings are relative to it."""
    if report.study is not None and report.study.base_s > 0:
        return 1 / report.study.base_s
    return report.throughput.steps_per_s


def bounded(interval: tuple[float, float] | None) -> bool:
    """Whether both ends of a ratio's interval tell something."""
    return interval is not None and all(map(units.known, interval)) and interval[1] < _OPEN


def result(one: Experiment) -> str:
    """The ratio, or that noise could explain it."""
    return units.factor(one.ratio) if one.conclusive else "inconclusive"


def between(interval: tuple[float, float] | None) -> str:
    """As "1.9 to 2.3"."""
    if interval is None:
        return ""
    return f"{units.number(interval[0])} to {units.number(interval[1])}" if bounded(interval) else "unknown"


def notes(experiments: Sequence[Experiment]) -> list[str]:
    """Their notes, with their names."""
    return [f"{one.name}: {note}" for one in experiments for note in one.notes]


def failures(study: Study) -> list[str]:
    """What has no result, and why."""
    return [f"{one.name}: {one.why}" for one in study.failures]


def facts(study: Study) -> list[tuple[str, str]]:
    """What they say together, each with a label; what was not measured is left out. The sandbox comes last."""
    told = []
    if units.known(study.elasticity_sum):
        interval = f" ({between(study.elasticity_ci95)})" if study.elasticity_ci95 else ""
        says = f": {study.elasticity_says}" if study.elasticity_says else ""
        told.append(("Sum", f"elasticities sum to {units.number(study.elasticity_sum)}{interval}{says}"))
    if units.known(study.waiting_s) and units.known(study.taken_s):
        base, waiting, taken = (units.seconds(max(0.0, t)) for t in (study.base_s, study.waiting_s, study.taken_s))
        lost = f"{taken} is lost to workers that take the cores"
        told.append(("Data", f"of {base} a step, {waiting} is waiting for data, {lost}"))
    times = "once" if study.runs == 1 else f"{study.runs} times"
    started = f"the program was started {times}"
    return [*told, ("Sandbox", f"{study.sandbox}; {started}" if study.sandbox else started)]

"""What experiments say, as phrases: the same on the page and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from unstall.records.experiments import ReportedExperiment, Study
from unstall.records.report import Report
from unstall.report.thresholds import UNKNOWN
from unstall.text import units


def baseline_speed(report: Report) -> float | None:
    """Steps a second as the program is: in the experiments where there are any, as ceilings are relative to it."""
    if report.study is not None and report.study.base_s > 0:
        return 1 / report.study.base_s
    return report.throughput.steps_per_s


def bounded(interval: tuple[float, float] | None) -> bool:
    """Whether both ends of a ratio's interval tell something."""
    return interval is not None and all(map(units.known, interval)) and interval[1] < UNKNOWN


def result(trial: ReportedExperiment) -> str:
    """The ratio, or that noise could explain it."""
    return units.factor(trial.ratio) if trial.conclusive else "inconclusive"


def between(interval: tuple[float, float] | None) -> str:
    """As "1.9 to 2.3"."""
    if interval is None:
        return ""
    return f"{units.number(interval[0])} to {units.number(interval[1])}" if bounded(interval) else "unknown"


def notes(experiments: Sequence[ReportedExperiment]) -> list[str]:
    """The notes of the experiments, each after its experiment's name."""
    return [f"{trial.name}: {note}" for trial in experiments for note in trial.notes]


def failures(study: Study) -> list[str]:
    """The experiments without a result, and why."""
    return [f"{failure.name}: {failure.why}" for failure in study.failures]


def summary(study: Study) -> list[tuple[str, str]]:
    """What the experiments say together, each line with a label, the sandbox last; absent: what was not measured."""
    lines = []
    if units.known(study.elasticity_sum):
        interval = f" ({between(study.elasticity_ci95)})" if study.elasticity_ci95 else ""
        conclusion = f": {study.elasticity_says}" if study.elasticity_says else ""
        lines.append(("Sum", f"elasticities sum to {units.number(study.elasticity_sum)}{interval}{conclusion}"))
    if units.known(study.waiting_s) and units.known(study.taken_s):
        base, waiting, taken_by_workers = (
            units.seconds(max(0.0, t)) for t in (study.base_s, study.waiting_s, study.taken_s)
        )
        lost = f"{taken_by_workers} is lost because loader workers take the cores"
        lines.append(("Data", f"of {base} a step, {waiting} is waiting for data, {lost}"))
    started = f"the program was started {units.times(study.runs)}"
    return [*lines, ("Sandbox", f"{study.sandbox}; {started}" if study.sandbox else started)]

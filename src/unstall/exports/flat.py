"""The figures as trackers of experiments name them: one flat dictionary of numbers, one of strings."""

from __future__ import annotations

from unstall.exports.metrics import facts, metrics
from unstall.records.report import Report
from unstall.text.sanitize import plain


def figures(report: Report) -> dict[str, float]:
    """As ``unstall/phase_seconds/data_wait``: the label that tells figures of one name apart comes last."""
    named = {}
    for metric in metrics(report):
        if metric.name != "unstall_run_info":
            name = metric.name.removeprefix("unstall_")
            named["/".join(["unstall", name, *metric.labels.values()])] = metric.value
    return named


def parameters(report: Report) -> dict[str, str]:
    """The run, its verdict and its environment."""
    environment = {name: plain(str(value)) for name, value in report.run.environment.items()}
    described = {f"unstall/{name}": value for name, value in facts(report).items() if value}
    return {**described, **{f"unstall/environment/{plain(name)}": value for name, value in environment.items()}}

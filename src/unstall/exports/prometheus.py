"""A text file for node_exporter's textfile collector, in Prometheus's exposition format 0.0.4."""

from __future__ import annotations

import os
from pathlib import Path

from unstall.exports.exporter import Exporter
from unstall.exports.metrics import metrics
from unstall.records.report import Report


class Prometheus(Exporter):
    """All metrics of a report as gauges."""

    name = "prometheus"
    help = "Write metrics for node_exporter's textfile collector."
    metavar = "FILE"
    takes = ("report",)

    def export(self, source: Report, target: str, flags: frozenset[str] = frozenset()) -> None:
        """Write the file whole or not at all, so that the collector never reads half of one."""
        path = Path(target)
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            partial.write_text(text(source), encoding="utf-8")
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)


EXPORTER = Prometheus()


def text(report: Report) -> str:
    """The metrics of a report, all of them gauges."""
    lines: list[str] = []
    described = ""
    for metric in metrics(report):
        if metric.name != described:
            described = metric.name
            lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} gauge"]
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in metric.labels.items())
        lines.append(f"{metric.name}{{{labels}}} {metric.value!r}" if labels else f"{metric.name} {metric.value!r}")
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

"""OpenTelemetry metrics, sent once to a collector by OTLP over HTTP."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

import unstall
from unstall.exports.exporter import Exporter, ExportError
from unstall.exports.metrics import Metric, facts, metrics
from unstall.records.report import Report
from unstall.text.sanitize import sanitize_line, shorten

_TIMEOUT_S = 10
_MAX_REASON_CHARACTERS = 200


class OpenTelemetry(Exporter):
    """All metrics of a report as gauges whose resource names the run."""

    name = "otlp"
    help = "Send metrics to an OpenTelemetry collector: http://host:4318/v1/metrics."
    metavar = "URL"
    takes = ("report",)
    extra = "opentelemetry"

    def export(self, source: Report, target: str, flags: frozenset[str] = frozenset()) -> None:
        """Send the metrics once; ExportError where the collector does not take them."""
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricExportResult

        reader = InMemoryMetricReader()
        collect(source, reader)
        log = _ErrorLog()
        with log.capturing():
            exporter = OTLPMetricExporter(endpoint=target, timeout=_TIMEOUT_S)
            result = exporter.export(reader.get_metrics_data())
            exporter.shutdown()
        if result is not MetricExportResult.SUCCESS:
            reason = f": {log.first_message}" if log.first_message else ""
            raise ExportError(f"the collector did not take the metrics{reason}")


EXPORTER = OpenTelemetry()


def collect(report: Report, reader: Any) -> None:
    """Let a metric reader read the metrics of a report."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource

    run = {f"unstall.{name}": value for name, value in facts(report).items() if value}
    resource = Resource.create({"service.name": "unstall", "service.version": unstall.__version__, **run})
    provider = MeterProvider([reader], resource, shutdown_on_exit=False)
    meter = provider.get_meter("unstall", unstall.__version__)
    for name, group in groupby(metrics(report), key=lambda metric: metric.name):
        points = list(group)
        meter.create_observable_gauge(name, [_callback(points)], unit=points[0].unit, description=points[0].help)


class _ErrorLog(logging.Handler):
    """The first message that the OTLP exporter logs: it logs several lines an attempt."""

    first_message = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.first_message = self.first_message or shorten(sanitize_line(record.getMessage()), _MAX_REASON_CHARACTERS)

    @contextlib.contextmanager
    def capturing(self) -> Iterator[None]:
        """Take what OpenTelemetry logs, in place of every other handler."""
        logger = logging.getLogger("opentelemetry")
        before, logger.handlers, logger.propagate = (logger.handlers, logger.propagate), [self], False
        try:
            yield
        finally:
            logger.handlers, logger.propagate = before


def _callback(points: list[Metric]) -> Callable[[Any], Iterable[Any]]:
    from opentelemetry.metrics import Observation

    return lambda options: [Observation(point.value, point.labels) for point in points]

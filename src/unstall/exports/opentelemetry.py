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
from unstall.text.sanitize import plain, shorten

_TIMEOUT_MS = 10_000
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
        log = _ErrorLog()
        with log.capturing():
            reader = _otlp_reader(target, log)
            try:
                send(source, reader)
            finally:
                reader.shutdown(_TIMEOUT_MS)
        if log.failed:
            reason = f": {log.first_message}" if log.first_message else ""
            raise ExportError(f"the collector did not take the metrics{reason}")


EXPORTER = OpenTelemetry()


def send(report: Report, reader: Any) -> None:
    """Put the metrics of a report through a metric reader, once."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource

    run = {f"unstall.{name}": value for name, value in facts(report).items() if value}
    resource = Resource.create({"service.name": "unstall", "service.version": unstall.__version__, **run})
    provider = MeterProvider([reader], resource, shutdown_on_exit=False)
    meter = provider.get_meter("unstall", unstall.__version__)
    for name, group in groupby(metrics(report), key=lambda metric: metric.name):
        points = list(group)
        meter.create_observable_gauge(name, [_callback(points)], unit=points[0].unit, description=points[0].help)
    provider.force_flush(_TIMEOUT_MS)


class _ErrorLog(logging.Handler):
    """Whether the OTLP exporter failed, and the first message that it logged: it logs several lines an attempt."""

    failed = False
    first_message = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.first_message = self.first_message or shorten(plain(record.getMessage()), _MAX_REASON_CHARACTERS)

    @contextlib.contextmanager
    def capturing(self) -> Iterator[None]:
        """Take what OpenTelemetry logs, in place of every other handler."""
        logger = logging.getLogger("opentelemetry")
        before, logger.handlers, logger.propagate = (logger.handlers, logger.propagate), [self], False
        try:
            yield
        finally:
            logger.handlers, logger.propagate = before


def _otlp_reader(endpoint: str, log: _ErrorLog) -> Any:
    """A reader that exports when it is flushed, and remembers a failure."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import MetricExportResult, PeriodicExportingMetricReader

    class RememberingExporter(OTLPMetricExporter):
        def export(self, *args: Any, **kwargs: Any) -> Any:
            result = super().export(*args, **kwargs)
            log.failed |= result is not MetricExportResult.SUCCESS
            return result

    exporter = RememberingExporter(endpoint=endpoint, timeout=_TIMEOUT_MS // 1000)
    return PeriodicExportingMetricReader(exporter, export_interval_millis=float("inf"))


def _callback(points: list[Metric]) -> Callable[[Any], Iterable[Any]]:
    from opentelemetry.metrics import Observation

    return lambda options: [Observation(point.value, point.labels) for point in points]

"""OpenTelemetry metrics, sent once to a collector by OTLP over HTTP."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

import unstall
from unstall.exports.metrics import Metric, facts, metrics
from unstall.records.report import Report
from unstall.text.sanitize import plain, shorten

_MISSING = 'OpenTelemetry is not installed; run: pip install "unstall[opentelemetry]"'
_PATIENCE_MS = 10_000
_LONGEST = 200  # characters of a reason


def send(report: Report, endpoint: str | None = None, *, reader: Any = None) -> None:
    """Send the metrics of a report as gauges whose resource names the run.

    Args:
        report: the finished report.
        endpoint: the collector's ``http://host:4318/v1/metrics``; by OpenTelemetry's own environment variables
            (``OTEL_EXPORTER_OTLP_ENDPOINT`` and the rest) if not given.
        reader: a metric reader in place of the OTLP exporter.

    Raises:
        RuntimeError: OpenTelemetry is not installed, or the collector did not take the metrics.
    """
    try:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.resources import Resource
    except ImportError as error:
        raise RuntimeError(_MISSING) from error
    outcome = _Outcome()
    described = {f"unstall.{name}": value for name, value in facts(report).items() if value}
    resource = Resource.create({"service.name": "unstall", "service.version": unstall.__version__, **described})
    provider = MeterProvider([reader or _otlp_reader(endpoint, outcome)], resource, shutdown_on_exit=False)
    with outcome.listening():
        try:
            meter = provider.get_meter("unstall", unstall.__version__)
            for name, group in groupby(metrics(report), key=lambda metric: metric.name):
                same = list(group)
                meter.create_observable_gauge(name, [_observing(same)], unit=same[0].unit, description=same[0].help)
            provider.force_flush(_PATIENCE_MS)
        finally:
            if reader is None:
                provider.shutdown(_PATIENCE_MS)
    if outcome.failed:
        raise RuntimeError(f"the collector did not take the metrics{f': {outcome.said}' if outcome.said else ''}")


class _Outcome(logging.Handler):
    """Whether the exporter failed, and the first that it said of that; it logs several lines of each attempt."""

    failed = False
    said = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.said = self.said or shorten(plain(record.getMessage()), _LONGEST)

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Hear what OpenTelemetry logs, in place of whoever else would."""
        logger = logging.getLogger("opentelemetry")
        before, logger.handlers, logger.propagate = (logger.handlers, logger.propagate), [self], False
        try:
            yield
        finally:
            logger.handlers, logger.propagate = before


def _otlp_reader(endpoint: str | None, outcome: _Outcome) -> Any:
    """A reader that exports when it is told to, and remembers a failure."""
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics.export import MetricExportResult, PeriodicExportingMetricReader
    except ImportError as error:
        raise RuntimeError(_MISSING) from error

    class Exporter(OTLPMetricExporter):
        def export(self, *args: Any, **kwargs: Any) -> Any:
            result = super().export(*args, **kwargs)
            outcome.failed |= result is not MetricExportResult.SUCCESS
            return result

    exporter = Exporter(endpoint=endpoint, timeout=_PATIENCE_MS // 1000)
    return PeriodicExportingMetricReader(exporter, export_interval_millis=float("inf"))


def _observing(same: list[Metric]) -> Callable[[Any], Iterable[Any]]:
    from opentelemetry.metrics import Observation

    return lambda options: [Observation(metric.value, metric.labels) for metric in same]

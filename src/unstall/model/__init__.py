"""The pipeline model: a recorded run as a simulation that answers what a change would bring.

``of(measured)`` or ``of_archive(archive)`` makes the :class:`Pipeline`; :func:`predict` and
:func:`elasticities` ask it; ``parse`` reads changes as a person writes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unstall.model.answer import answer, assumptions, survey
from unstall.model.build import build
from unstall.model.changes import ChangeError, Changes, apply, parse
from unstall.model.pipeline_model import Pipeline
from unstall.model.predict import Prediction, deterministic_limit, elasticities, predict
from unstall.model.recorded import NotRecorded

if TYPE_CHECKING:
    from unstall.benchmark.measure import Measured
    from unstall.records.archive import Archive


def of(measured: Measured, *, device_busy: float | None = None) -> Pipeline:
    """The pipeline of a run that has just been measured; ``device_busy``: share of the time that the device worked."""
    from unstall.model.recorded import of_measured

    return build(of_measured(measured, device_busy=device_busy))


def of_archive(archive: Archive) -> Pipeline:
    """The pipeline of an archived run. Raises :class:`NotRecorded` where only its report is left."""
    from unstall.model.recorded import of_archive as recorded_of

    return build(recorded_of(archive))


__all__ = [
    "ChangeError",
    "Changes",
    "NotRecorded",
    "Pipeline",
    "Prediction",
    "answer",
    "apply",
    "assumptions",
    "build",
    "deterministic_limit",
    "elasticities",
    "of",
    "of_archive",
    "parse",
    "predict",
    "survey",
]

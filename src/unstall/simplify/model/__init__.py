"""The pipeline model: a recorded run as a simulation that answers what a change would bring.

``of(measured)`` or ``of_archive(kept)`` makes the :class:`Pipeline`; :func:`predict` and :func:`elasticities` ask it;
``parse`` reads changes as a person writes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unstall.simplify.model.answer import answer, assumptions, survey
from unstall.simplify.model.build import build
from unstall.simplify.model.changes import ChangeError, Changes, apply, parse
from unstall.simplify.model.limits import deterministic_limit
from unstall.simplify.model.pipeline import Pipeline
from unstall.simplify.model.predict import Prediction, elasticities, predict
from unstall.simplify.model.recorded import NotRecorded
from unstall.simplify.model.timed import Timed, knowing

if TYPE_CHECKING:
    from unstall.benchmark.measure import Measured
    from unstall.kept import Archive


def of(measured: Measured, *, device_busy: float | None = None) -> Pipeline:
    """The pipeline of a run that has just been measured; ``device_busy``: share of the time that the device worked."""
    from unstall.simplify.model.recorded import of_measured

    return build(of_measured(measured, device_busy=device_busy))


def of_archive(kept: Archive) -> Pipeline:
    """The pipeline of a run that was kept. Raises :class:`NotRecorded` where only its report is left."""
    from unstall.simplify.model.recorded import of_archive as recorded_of

    return build(recorded_of(kept))


__all__ = [
    "ChangeError",
    "Changes",
    "NotRecorded",
    "Pipeline",
    "Prediction",
    "Timed",
    "answer",
    "apply",
    "assumptions",
    "build",
    "deterministic_limit",
    "elasticities",
    "knowing",
    "of",
    "of_archive",
    "parse",
    "predict",
    "survey",
]

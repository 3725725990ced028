"""The pipeline model: a recorded run as a simulation that answers what a change would bring.

:func:`of` or :func:`of_archive` makes the :class:`Pipeline`; :func:`predict`, :func:`survey` and :func:`elasticities`
ask it; :func:`parse` reads changes as a person writes them.
"""

from unstall.model.build import build, of, of_archive
from unstall.model.changes import AS_RECORDED, ChangeError, Changes, parse
from unstall.model.pipeline_model import Pipeline
from unstall.model.predict import elasticities, predict
from unstall.model.recorded import NotRecorded
from unstall.model.usual_changes import assumptions, survey

__all__ = [
    "AS_RECORDED",
    "ChangeError",
    "Changes",
    "NotRecorded",
    "Pipeline",
    "assumptions",
    "build",
    "elasticities",
    "of",
    "of_archive",
    "parse",
    "predict",
    "survey",
]

"""``unstall what-if``: what a change would bring, predicted from a recorded run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unstall import model
from unstall.records.what_if import WhatIfReport
from unstall.runs import archives
from unstall.runs.errors import refusing


def predict(run: str, changes: Sequence[str], **settings: Any) -> WhatIfReport:
    """The answer for all changes together; where nothing is asked, which changes would bring the most.

    Args:
        run: as :func:`unstall.runs.archives.load` takes it.
        changes: of phases and functions, as ``NAME=CHANGE``.
        settings: workers, prefetch, threads, cores, in_order and persistent; those that are None stay.

    Raises:
        Refused: there is no such run, it has no recorded steps, or no such change.
    """
    with refusing(model.ChangeError, model.NotRecorded):
        parsed = model.parse(changes, **settings)
        recorded = archives.load(run)
        pipeline = model.of_archive(recorded)
        return WhatIfReport(
            run=recorded.report.run.id,
            command=recorded.report.run.command,
            recorded_step_s=pipeline.measured_s,
            answers=model.survey(pipeline) if parsed == model.AS_RECORDED else [model.predict(pipeline, parsed)],
            elasticities=model.elasticities(pipeline, parsed),
            notes=model.assumptions(pipeline, parsed),
        )

"""Find the run that a person names: a kept one, a report, or a GPU trace."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from unstall.benchmark import archive
from unstall.benchmark.archive import ArchiveError
from unstall.runs.errors import Refused, refusing

if TYPE_CHECKING:
    from unstall.records.archive import Archive
    from unstall.records.what_if import Sliders
    from unstall.trace.timeline import Timeline


def load(run: str) -> Archive:
    """A kept run, or a report alone. Raises Refused where there is none by that name."""
    with refusing(ArchiveError):
        return archive.load(run)


def load_report(run: str) -> Archive:
    """A kept run, a report alone, or the diagnosis of a GPU trace. Raises Refused where it is none of them."""
    recording = _run_or_trace(run)
    if not isinstance(recording, list):
        return recording
    from unstall.diagnose.trace_report import report
    from unstall.records.archive import Archive
    from unstall.trace.ranks import Ranks

    return Archive(report=report(Ranks.of(recording), [run]))


def load_exportable(run: str) -> Archive | Timeline:
    """A kept run, a report alone, or the first process of a GPU trace. Raises Refused where it is none of them."""
    recording = _run_or_trace(run)
    return recording[0] if isinstance(recording, list) else recording


def _run_or_trace(run: str) -> Archive | list[Timeline]:
    try:
        return archive.load(run)
    except ArchiveError as error:
        if Path(run).is_file():
            from unstall.trace.readers import read
            from unstall.trace.timeline import TraceError

            with contextlib.suppress(TraceError):
                return read(Path(run))
        raise Refused(str(error)) from error


def predictions(run: Archive) -> Sliders | None:
    """What the page's sliders show; None where the run gives no model to predict with."""
    from unstall.model.sliders import sliders

    return sliders(run)


def with_source(run: Archive) -> Archive:
    """The run with excerpts of the source that its report blames, read from the files where none were kept with it."""
    from unstall.diagnose.source_excerpt import of_report

    return msgspec.structs.replace(run, excerpts=of_report(run.report, run.excerpts))

"""When a server has no request: what lies between the marks that its seam leaves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unstall.benchmark.reader import ProcessRecording, Spans, starts
from unstall.child.seams.servers import REQUEST

Floats = npt.NDArray[np.float64]


def has_requests(process: ProcessRecording) -> bool:
    """Whether it is a server."""
    return bool(len(_marks(process)))


def without_request(process: ProcessRecording, boundaries: Floats) -> Floats:
    """Seconds of each step in which a server has no request, in whichever thread; none of what is no server."""
    marks = _marks(process)
    if not len(marks):
        return np.zeros(len(boundaries) - 1)
    began = starts(marks) - marks["arg"] / 1e9
    order = np.argsort(began, kind="stable")
    began, ended = began[order], np.maximum.accumulate(starts(marks)[order])
    # Of each request, what none that came before it was still there for.
    first = np.maximum(began, np.append(-np.inf, ended[:-1]))
    served = np.concatenate([[0.0], np.cumsum(np.clip(ended - first, 0, None))])

    def until(moment: Floats) -> Floats:
        """Seconds with a request up to some moments."""
        index = np.searchsorted(first, moment, side="right")
        last = np.clip(index - 1, 0, None)
        return served[index] - np.where(index > 0, np.clip(ended[last] - moment, 0, None), 0)

    busy = np.diff(until(boundaries))
    return np.clip(np.diff(boundaries) - busy, 0, None)


def _marks(process: ProcessRecording) -> Spans:
    """The ends of its requests, each with its nanoseconds."""
    return process.spans[np.isin(process.spans["name"], process.of(REQUEST))]

"""`torch.tensor` of a list reads the list by way of NumPy."""

from __future__ import annotations

from unstall.optimize.context import RemedyContext
from unstall.optimize.hot_calls import HotCalls
from unstall.optimize.proposal import Proposal
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.rewrites.listed_tensors import by_arrays, listed_tensors
from unstall.optimize.thresholds import READING_LISTS_SAVES

_CALLS = HotCalls(
    listed_tensors,
    by_arrays,
    READING_LISTS_SAVES,
    title="reads lists by way of NumPy ({place})",
    because="the lines of {name} that make tensors take {share} of the step",
    none="no hot line of your own makes a tensor of a list",
)


class ListedTensors(Remedy):
    """The functions, or the file's top level, whose lines that make tensors the stack samples fell in."""

    name = "listed-tensors"
    brief = "`torch.tensor(rows)`, where `rows` is a nested list or a list of arrays, reads it by way of NumPy"
    needs = "`torch.tensor`, `torch.FloatTensor` or one like them on a hot line of your own"
    patterns = ("input-bound", "host-bound", "callback-bound", "environment-bound", "overhead-bound", "transfer-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        return _CALLS.proposals(context)


REMEDY = ListedTensors()

"""The line whose gradient costs far more than what it computes: a slice's is a tensor of the whole."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from unstall.diagnose.features import HostFeatures
from unstall.diagnose.thresholds import DEAR_GRADIENT, GRADIENT_RATIO
from unstall.records.measurements import OperatorLine
from unstall.records.observations import Frame
from unstall.records.vocabulary import BACKWARD
from unstall.text.units import factor, percent

_ADVICE = (
    (
        r"(Slice|Select|AsStrided|Diagonal|Unfold)",
        "take the parts of a tensor at once, before the loop: `unbind`, `split` or `chunk`. The gradient of each slice "
        "fills a tensor of the whole, and these are added up",
    ),
    (
        r"Embedding",
        "compute the gradient of the rows that were used only: `Embedding(..., sparse=True)` with SGD or SparseAdam, "
        "or a smaller table",
    ),
    (
        r"(Index|Gather|Take)",
        "index once for all, by `index_select` or `torch.nn.functional.embedding`, and without gradients where "
        "nothing learns from them",
    ),
)
"""By the beginning of a node's name."""
_ELSE = "look for an operator with a cheaper gradient, and `detach()` what nothing learns from"


@dataclass(frozen=True)
class DearGradient:
    """A line whose gradient takes a good part of the step, and many times what the line's own operators take."""

    frame: Frame
    node: str
    """What computes it, as autograd calls it."""
    share: float
    """Of the step."""
    ratio: float
    """Of the time of its operators in forward."""

    @property
    def sentence(self) -> str:
        """Evidence, for a person."""
        return (
            f"the gradient of one line takes {percent(self.share)} of a step, {factor(self.ratio)} what its operators "
            f"take in forward: {self.node}"
        )

    @property
    def advice(self) -> str:
        """What makes such a gradient cheaper."""
        return next((advice for node, advice in _ADVICE if re.match(node, self.node)), _ELSE)


def dear_gradient(host: HostFeatures) -> DearGradient | None:
    """The dearest line of the step, if it is that dear."""
    operators = host.measurement.operators
    total_s = sum(line.backward_s for line in operators)
    dearest = max(_by_line(operators), key=lambda line: line.backward_s, default=None)
    if dearest is None or total_s <= 0:
        return None
    share = host.share(BACKWARD.name) * dearest.backward_s / total_s
    ratio = dearest.backward_s / max(dearest.forward_s, 1e-9)
    is_dear = share >= DEAR_GRADIENT and ratio >= GRADIENT_RATIO
    return DearGradient(dearest.frames[-1], dearest.node, share, ratio) if is_dear else None


def _by_line(operators: Iterable[OperatorLine]) -> list[OperatorLine]:
    """One for each line of the program, however it is reached."""
    lines: dict[Frame, list[OperatorLine]] = defaultdict(list)
    for each in operators:
        if each.frames:
            lines[each.frames[-1]].append(each)
    return [
        msgspec.structs.replace(
            max(alike, key=lambda each: each.backward_s),
            forward_s=sum(each.forward_s for each in alike),
            backward_s=sum(each.backward_s for each in alike),
        )
        for alike in lines.values()
    ]

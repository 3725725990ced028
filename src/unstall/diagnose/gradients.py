"""The line whose gradient costs far more than what it computes: a slice's is a tensor of the whole."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from unstall.diagnose.features import HostFeatures
from unstall.diagnose.layer_types import RECURRENT, is_mostly
from unstall.diagnose.placing import count
from unstall.diagnose.thresholds import COSTLY_GRADIENT, GRADIENT_RATIO
from unstall.records.model import OperatorLine
from unstall.records.observations import Frame
from unstall.records.vocabulary import BACKWARD, FORWARD
from unstall.text.units import factor, percent

_PARTS = r"(Slice|Select|AsStrided|Diagonal|Unfold)"
"""Nodes of operators that take a part of a tensor."""
_CHECKPOINT = "CheckpointFunctionBackward"
"""The node of a checkpointed part: it goes forward and backward through all of it."""
_ADVICE = (
    (
        _PARTS,
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
_OF_A_LAYER = (
    "torch computes this layer one step after the other here, and the gradient of each step fills a tensor of all: its "
    "time grows with the square of the length. Shorter sequences, batches of rows of like length, truncated "
    "backpropagation"
)
"""Of a recurrent layer of torch's: nobody but torch can take its parts at once."""
_ELSE = "look for an operator with a cheaper gradient, and `detach()` what nothing learns from"


@dataclass(frozen=True)
class CostlyGradient:
    """A line whose gradient takes a good part of the step, and many times what the line's own operators take."""

    frame: Frame
    node: str
    """What computes it, as autograd calls it."""
    share: float
    """Of the step."""
    ratio: float
    """Of the time of its operators in forward."""
    in_layer: bool = False
    """It is the gradient of a recurrent layer's own steps."""

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
        if self.in_layer:
            return _OF_A_LAYER
        return next((advice for node, advice in _ADVICE if re.match(node, self.node)), _ELSE)


def _recomputing(host: HostFeatures) -> float:
    """Share of backward in which checkpoints compute forward again."""
    return count(host.blame.recomputed) / max(count(host.blame.in_phase(BACKWARD.name)), 1)


def costly_gradient(host: HostFeatures) -> CostlyGradient | None:
    """The costliest line of backward, if it is that costly."""
    lines: dict[Frame, list[tuple[OperatorLine, float]]] = defaultdict(list)  # however they are reached
    for line, share in host.measurement.backward_shares:
        if line.node != _CHECKPOINT:
            lines[line.frames[-1]].append((line, share))
    if not lines:
        return None
    alike = max(lines.values(), key=lambda alike: sum(share for _, share in alike))
    # A node's time holds that of the hooks that it calls, and of what a checkpoint computes again for it.
    engine = 1 - host.blame.called_share - _recomputing(host)
    share = host.share(BACKWARD.name) * engine * sum(share for _, share in alike)
    forward_s, backward_s = (sum(getattr(line, name) for line, _ in alike) for name in ("forward_s", "backward_s"))
    ratio = engine * backward_s / max(forward_s, 1e-9)
    costliest, _ = max(alike, key=lambda pair: pair[1])
    in_layer = re.match(_PARTS, costliest.node) is not None and is_mostly(host, RECURRENT)
    if in_layer:  # its many small operators are what the timers of the early steps slow most
        ratio = max(ratio, share / max(host.share_of_lines([line for line, _ in alike], FORWARD.name), 1e-9))
    if share < COSTLY_GRADIENT or ratio < GRADIENT_RATIO:
        return None
    return CostlyGradient(costliest.frames[-1], costliest.node, share, ratio, in_layer)

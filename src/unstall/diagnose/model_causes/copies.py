"""A line that only moves data: parts joined, repeated or copied, with nothing computed of them."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import NamedTuple

from unstall.diagnose.blame import culprit_at
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.model_causes.base import ModelCause, Suspects
from unstall.diagnose.patterns.base import BY_REWRITING, UsualRemedy
from unstall.diagnose.thresholds import COPYING
from unstall.records.model import OperatorLine
from unstall.records.observations import Frame
from unstall.records.report import Culprit
from unstall.records.vocabulary import BACKWARD, FORWARD
from unstall.text.units import percent
from unstall.threshold import Range

_MOVES = re.compile(r"(Cat|Stack|Copy|Clone|Repeat|ConstantPad|ToCopy|Roll|Flip)")
"""By the beginning of the node of autograd that stands for the operator."""


class _Line(NamedTuple):
    frame: Frame
    node: str
    share: float
    """Of the step, in forward and backward."""


class Copies(ModelCause):
    """One line joins or copies tensors for a good part of the step."""

    name = "copies"
    sure = True
    by_hand = "join the parts once: collect them in a list, or write them into a tensor of the final size"
    usual_remedy = UsualRemedy("joining once", Range(0.0, 0.3, 0.98, BY_REWRITING))

    def is_found(self, host: HostFeatures, suspects: Suspects) -> bool:
        line = _costliest(host)
        return line is not None and line.share >= COPYING

    def waste_s(self, host: HostFeatures, suspects: Suspects) -> float:
        line = _costliest(host)
        return line.share * host.step_s if line is not None else 0.0

    def culprit(self, host: HostFeatures, suspects: Suspects) -> Culprit | None:
        line = _costliest(host)
        return culprit_at(line.frame.file, line.frame.line, line.share) if line is not None else None

    def evidence(self, host: HostFeatures, suspects: Suspects) -> list[str]:
        line = _costliest(host)
        return (
            [] if line is None else [f"{percent(line.share)} of a step is one line that only moves data: {line.node}"]
        )

    def advice(self, suspects: Suspects) -> str:
        return "join the parts once, not piece by piece: a list and one torch.cat, or a tensor of the final size"


def _costliest(host: HostFeatures) -> _Line | None:
    """The line that moves the most data, however it is reached."""
    operators = host.measurement.operators
    forward_s, backward_s = (
        sum(getattr(line, name) for line in operators) or 1.0 for name in ("forward_s", "backward_s")
    )
    alike: dict[Frame, list[OperatorLine]] = defaultdict(list)
    for line in operators:
        if line.frames and _MOVES.match(line.node):
            alike[line.frames[-1]].append(line)
    lines = [
        _Line(
            frame, lines[0].node,
            host.share(FORWARD.name) * sum(line.forward_s for line in lines) / forward_s
            + host.share(BACKWARD.name) * sum(line.backward_s for line in lines) / backward_s,
        )
        for frame, lines in alike.items()
    ]  # fmt: skip
    return max(lines, key=lambda line: line.share, default=None)

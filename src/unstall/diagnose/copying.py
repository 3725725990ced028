"""The line that moves the most data with nothing computed of it: parts joined, repeated or copied."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from unstall.diagnose.features import HostFeatures
from unstall.diagnose.thresholds import COPYING
from unstall.records.model import OperatorLine
from unstall.records.observations import Frame
from unstall.text.units import percent

_MOVES = re.compile(r"(Cat|Stack|Copy|Clone|Repeat|ConstantPad|ToCopy|Roll|Flip)")
"""By the beginning of the node of autograd that stands for the operator."""


@dataclass(frozen=True)
class CopyingLine:
    """A line that only moves data, and takes a good part of the step."""

    frame: Frame
    node: str
    """The operator, as autograd calls it."""
    share: float
    """Of the step, in forward and backward."""

    @property
    def sentence(self) -> str:
        """Evidence, for a person."""
        return f"{percent(self.share)} of a step is one line that only moves data: {self.node}"


def copying_line(host: HostFeatures) -> CopyingLine | None:
    """The costliest such line, however it is reached, if it takes enough of the step."""
    alike: dict[Frame, list[OperatorLine]] = defaultdict(list)
    for line in host.measurement.operators:
        if line.frames and _MOVES.match(line.node):
            alike[line.frames[-1]].append(line)
    lines = [CopyingLine(frame, lines[0].node, host.share_of_lines(lines)) for frame, lines in alike.items()]
    return max((line for line in lines if line.share >= COPYING), key=lambda line: line.share, default=None)

"""Attention that is written out: scores, mask and softmax one after the other, each a matrix of keys by queries."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from unstall.diagnose import source
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.thresholds import ATTENTION
from unstall.records.model import OperatorLine
from unstall.records.observations import Frame
from unstall.text.units import percent

_PRODUCT = re.compile(r"(Bmm|Baddbmm)")
_SOFTMAX = re.compile(r"Softmax")
"""By the beginning of the node of autograd that stands for the operator."""


@dataclass(frozen=True)
class WrittenOut:
    """The lines of one function from the scores of the keys to the sum of the values."""

    frame: Frame
    """Of the costliest of the lines."""
    share: float
    """Of the step, in forward and backward."""

    @property
    def sentence(self) -> str:
        """Evidence, for a person."""
        return f"{percent(self.share)} of a step is attention in separate operators, from its scores to their softmax"


def written_out(host: HostFeatures) -> WrittenOut | None:
    """The costliest attention that is no fused operator, if it takes enough of the step."""
    functions: dict[tuple[str, str], list[OperatorLine]] = defaultdict(list)
    for line in host.measurement.operators:
        if line.frames:
            frame = line.frames[-1]
            functions[frame.file, source.function_at(frame.file, frame.line, frame.function).qualname].append(line)
    found = []
    for lines in map(_attention_in, functions.values()):
        share = host.share_of_lines(lines)
        if share >= ATTENTION:
            costliest = max(lines, key=lambda line: line.forward_s + line.backward_s)
            found.append(WrittenOut(costliest.frames[-1], share))
    return max(found, key=lambda attention: attention.share, default=None)


def _attention_in(lines: list[OperatorLine]) -> list[OperatorLine]:
    """Of a function's lines those from the product before a softmax to the one after it; none without all three."""

    def at(line: OperatorLine) -> int:
        return line.frames[-1].line

    products = [at(line) for line in lines if _PRODUCT.match(line.node)]
    softmaxes = [at(line) for line in lines if _SOFTMAX.match(line.node)]
    for softmax in softmaxes:
        before, after = ([at for at in products if at < softmax], [at for at in products if at > softmax])
        if before and after:
            return [line for line in lines if max(before) <= at(line) <= min(after)]
    return []

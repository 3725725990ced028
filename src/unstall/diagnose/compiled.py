"""The functions that torch.compile compiled, with what their source says of them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from unstall.diagnose import source
from unstall.records.compiled import CompiledFrame, GraphBreak


def explained(frames: Sequence[CompiledFrame]) -> list[CompiledFrame]:
    """Those that are anything but one graph compiled once: qualified names, and the code where torch kept no reason."""
    return [_explained(frame) for frame in frames if frame.hindered]


def function_of(frame: CompiledFrame) -> source.SourceFunction:
    """The function as it is written."""
    return source.function_at(frame.file, frame.line, frame.function.rpartition(".")[2])


def _explained(frame: CompiledFrame) -> CompiledFrame:
    breaks = [_with_code(frame, broken) for broken in frame.breaks]
    return msgspec.structs.replace(frame, function=function_of(frame).qualname, breaks=breaks)


def _with_code(frame: CompiledFrame, broken: GraphBreak) -> GraphBreak:
    """A branch on a value ends a graph without another analysis, and so without a reason."""
    if broken.reason:
        return broken
    return msgspec.structs.replace(broken, reason=source.code_at(frame.file, broken.line))

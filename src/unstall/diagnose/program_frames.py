"""The program's own frames of a stack sample."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from unstall.child.user_files import is_program_file
from unstall.diagnose import source
from unstall.records.observations import Frame

ProgramFrames = Sequence[tuple[Frame, source.SourceFunction]]
"""The program's frames of a stack, outermost first, with the functions they are in."""

_HANDED_ON = ("__torch_function__", "__torch_dispatch__", "__array_function__", "__array_ufunc__")
"""Methods of a tensor's or array's class that operators pass through."""


def short(function: str) -> str:
    """A frame's function without its class: from Python 3.11 on, the sampler gives qualified names."""
    return function.rpartition(".")[2]


def program_frames(frames: Sequence[Frame], is_programs: Callable[[str], bool] = is_program_file) -> ProgramFrames:
    """The frames of the program's own files, with their functions.

    A tensor subclass sees each operator pass by: who called the operator is meant, not who handed it on.
    """
    return tuple(
        (frame, source.function_at(frame.file, frame.line, short(frame.function)))
        for frame in frames
        if is_programs(frame.file) and short(frame.function) not in _HANDED_ON
    )


def called_by_program(frames: Sequence[Frame]) -> Sequence[Frame]:
    """What the deepest of the program's frames calls; all where none is the program's."""
    below = itertools.takewhile(lambda frame: not is_program_file(frame.file), reversed(frames))
    return [*below][::-1]

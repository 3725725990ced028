"""What backward takes, at the lines whose gradients it computes.

Stacks show one line for all of it, the call of ``loss.backward()``. Which operator a gradient belongs to was seen in
one early cycle, and how much of backward each takes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from unstall.benchmark.stacks import divided
from unstall.child.user_files import is_program_file
from unstall.diagnose.placing import Placed, count
from unstall.diagnose.program_frames import program_frames, short
from unstall.records.model import OperatorLine
from unstall.records.observations import Frame
from unstall.records.vocabulary import BACKWARD

_CHECKPOINT = re.compile(r"[/\\]torch[/\\]utils[/\\]checkpoint\.py$")
_BACKWARD = re.compile(r"[/\\]torch[/\\]autograd[/\\](__init__|graph)\.py$")
_ENGINE = re.compile(r"[/\\]torch[/\\]autograd[/\\][^/\\]+$")


def attributed(samples: Sequence[Placed], shares: Sequence[tuple[OperatorLine, float]]) -> list[Placed]:
    """The same samples, but those in autograd's engine at the lines whose gradients it computes, as many in all.

    What is of no line stays where it is, and so does Python code that backward calls.

    Args:
        samples: of one thread.
        shares: of backward, by line.
    """
    computing = [placed for placed in samples if is_in_engine(placed)]
    if not computing or not shares:
        return list(samples)
    weights = [share for _, share in shares]
    moved = [
        _at_line(computing[0], line, hits)
        for (line, _), hits in zip(shares, divided(count(computing), [*weights, 1 - sum(weights)]))
        if hits
    ]
    left = count(computing) - count(moved)
    stay = divided(left, [placed.count / count(computing) for placed in computing])
    kept = [_counted(placed, hits) for placed, hits in zip(computing, stay) if hits]
    return [*(placed for placed in samples if not is_in_engine(placed)), *moved, *kept]


def called_share(samples: Sequence[Placed]) -> float:
    """Share of backward in functions of the program's that autograd calls; 0 without samples."""
    total = count(placed for placed in samples if placed.phase == BACKWARD.name)
    return count(placed for placed in samples if is_called(placed)) / total if total else 0.0


def is_called(placed: Placed) -> bool:
    """Whether autograd called a function of the program's: a hook, or the gradient of a function of its own.

    What a checkpoint computes again is forward's, and not meant.
    """
    if placed.phase != BACKWARD.name:
        return False
    frames = placed.sample.frames
    engine = next((at for at, frame in enumerate(frames) if _ENGINE.search(frame.file)), len(frames))
    below = frames[engine + 1 :]
    return any(is_program_file(frame.file) for frame in below) and not any(
        _CHECKPOINT.search(frame.file) for frame in below
    )


def recomputes(placed: Placed) -> bool:
    """Whether a checkpoint computes forward again, from its own backward or from a hook of what was saved.

    With ``use_reentrant=True`` the backward of its part comes after that, and is not meant.
    """
    frames = placed.sample.frames
    begins = [at for at, frame in enumerate(frames) if _begins_again(frame)]
    return bool(begins) and not any(_BACKWARD.search(frame.file) for frame in frames[begins[-1] + 1 :])


def _begins_again(frame: Frame) -> bool:
    return bool(_CHECKPOINT.search(frame.file)) and short(frame.function) in ("unpack_hook", "recompute_fn", "backward")


def is_in_engine(placed: Placed) -> bool:
    """Whether backward was in torch's own code, and in no function of the program's that it calls."""
    frames = placed.sample.frames
    return placed.phase == BACKWARD.name and bool(frames) and bool(_ENGINE.search(frames[-1].file))


def _at_line(placed: Placed, line: OperatorLine, hits: int) -> Placed:
    sample = msgspec.structs.replace(placed.sample, frames=line.frames, count=hits)
    return replace(placed, sample=sample, program=program_frames(line.frames))


def _counted(placed: Placed, hits: int) -> Placed:
    return replace(placed, sample=msgspec.structs.replace(placed.sample, count=hits))

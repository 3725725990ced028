"""What models of the change give beside all that the original's give: a mask beside the logits, say.

It is no other result, as long as each output of the original is there, at its place.
"""

from __future__ import annotations

from dataclasses import replace

from unstall.optimize.sameness import ObservedTensor
from unstall.prove.runner import WholeRun

NOTE = "not compared: outputs of models that only the change has"
_OUTPUT = "output."


def without(original: WholeRun, changed: WholeRun) -> WholeRun:
    """The changed run without what its models give after the last output of the original, call by call."""
    kept: list[ObservedTensor] = []
    latest = ""
    for tensor in changed.tensors:
        number = len(kept)
        is_there = number < len(original.tensors) and original.tensors[number].what == tensor.what
        if is_there or not _follows(tensor.what, latest):
            kept.append(tensor)
        latest = tensor.what
    return replace(changed, tensors=kept) if len(kept) < len(changed.tensors) else changed


def _follows(what: str, latest: str) -> bool:
    """Whether it is an output of the same call as the one before it."""
    if not (what.startswith(_OUTPUT) and latest.startswith(_OUTPUT)):
        return False
    return int(what.removeprefix(_OUTPUT)) == int(latest.removeprefix(_OUTPUT)) + 1

"""State that an optimizer of the change keeps under other names than the original's: the weights tell what it does.

A program's own Adam keeps ``mean`` where torch's keeps ``exp_avg``, and is the same optimizer. State that is the same
by its name is compared, and weights after each of many steps are in any case.
"""

from __future__ import annotations

from dataclasses import replace

from unstall.prove.runner import WholeRun

NOTE = "not compared: optimizer state that only one side has under its name"
_STATE = "state."


def between(original: WholeRun, changed: WholeRun) -> frozenset[str]:
    """What only one of two runs has of an optimizer that has some state in both."""
    before, after = (
        {tensor.what for tensor in run.tensors if tensor.what.startswith(_STATE)} for run in (original, changed)
    )
    both = {_owner(what) for what in before} & {_owner(what) for what in after}
    return frozenset(what for what in before ^ after if _owner(what) in both)


def without(names: frozenset[str], run: WholeRun) -> WholeRun:
    """The run without these tensors."""
    if not names:
        return run
    return replace(run, tensors=[tensor for tensor in run.tensors if tensor.what not in names])


def _owner(what: str) -> str:
    """The optimizer, by its number."""
    return what.split(".", 2)[1]

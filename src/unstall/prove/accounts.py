"""Compare the accounts of two whole runs: steps, calls of models, batches, random numbers (child/trial/account.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unstall.prove import thresholds
from unstall.records.proof import Difference

Account = Mapping[str, Any]
_MODES = {"train": "training", "eval": "validation"}


def first_difference(original: Account, changed: Account, *, to_the_bit: bool) -> Difference | None:
    """The first difference; ``to_the_bit``: what goes into the models must be the same in every bit."""
    for place, before, after in _counts(original, changed):
        if before != after:
            return Difference(kind="counts", place=place, detail=f"{after} instead of {before}")
    calls = zip(original["calls"], changed["calls"])
    for number, ((_, _, before, digest), (_, _, after, other)) in enumerate(calls, 1):
        if before != after:
            return Difference(kind="values", place=f"call {number} of a model", detail=f"{after} instead of {before}")
        if to_the_bit and digest != other:
            return Difference(kind="values", place=f"call {number} of a model", detail="other numbers go into it")
    batches = [] if original["calls"] else zip(original["batches"], changed["batches"])
    for number, ((_, digest), (_, other)) in enumerate(batches, 1):
        if to_the_bit and digest != other:
            return Difference(kind="values", place=f"batch {number}", detail="it holds other numbers")
    if to_the_bit and original["calls"] and original["chains"]["calls"] != changed["chains"]["calls"]:
        return Difference(kind="values", place="a later call of a model", detail="other numbers go into it")
    return None


def samples(account: Account) -> Sequence[int]:
    """How many went through models in training, in validation, and were given by loaders."""
    given = sum(samples for samples, _ in account["batches"])
    return [*(sum(_sizes(account["calls"], mode)) for mode in _MODES), given]


def calls_of(account: Account, mode: str) -> int:
    """How often models were called in ``train`` or ``eval``."""
    return len(_sizes(account["calls"], mode))


def has_loader(account: Account | None) -> bool:
    """Whether a loader of torch gives batches, and so there may be a dataset."""
    return bool((account or {}).get("batches"))


def draws_differ(original: Account, changed: Account) -> bool:
    """Whether a global generator is in another state at the end: other random numbers were drawn, or more of them."""
    return bool(original["random"] != changed["random"])


def left_in_shared_memory(original: Account, changed: Account) -> str | None:
    """What the changed program leaves there, in words; None where the original leaves something, too."""
    if original["shared"] or not changed["shared"]:
        return None
    return f"it leaves {changed['shared']:,} bytes in shared memory, which outlive it"


def changed_at_the_end(original: Account, changed: Account) -> Difference | None:
    """Parameters that are changed after the last step, where the original's are not."""
    if original["unsettled"] or not changed["unsettled"]:
        return None
    detail = f"{changed['unsettled']} of them are changed after the last step, and in the original none is"
    return Difference(kind="values", place="parameters", detail=detail)


def behaves_otherwise(original: Account, changed: Account) -> str | None:
    """What the changed program does to itself or to others in all of the run, in words; None where nothing is seen."""
    if set(changed["signals"]) - set(original["signals"]):
        return "it blocks, ignores or handles signals that end a program"
    if max(changed["cores"], default=0) < min(original["cores"], default=0):
        return "it binds itself to fewer cores, which two runs at once would share"
    most, before = changed["most_threads"], original["most_threads"]
    if most > max(thresholds.MANY_THREADS, thresholds.MORE_THREADS * before):
        return f"it has {most} threads at once now and then, and the original {before}"
    return left_in_shared_memory(original, changed)


def takes_precedence(original: Account, changed: Account) -> bool:
    """Whether the changed program has the system prefer it to others: what it gains so is theirs."""
    return min(changed["nice"], default=0) < min(original["nice"], default=0) or (
        not set(changed["policy"]) <= set(original["policy"])
    )


def in_words(account: Account) -> str:
    """``24 steps, 24 training calls with 384 samples``."""
    steps = [f"{account['steps']} optimizer steps"] if account["steps"] else []
    calls = [
        f"{len(sizes)} {_MODES[mode]} calls of models with {sum(sizes)} samples"
        for mode in _MODES
        if (sizes := _sizes(account["calls"], mode))
    ]
    batches = [f"{len(account['batches'])} batches"] if account["batches"] else []
    return ", ".join([*steps, *calls, *batches])


def _counts(original: Account, changed: Account) -> Iterator[tuple[str, int, int]]:
    """(of what, how many in the original, how many in the changed program)."""
    yield "optimizer steps", original["steps"], changed["steps"]
    for mode, name in _MODES.items():
        before, after = (_sizes(account["calls"], mode) for account in (original, changed))
        if mode == "train":
            yield f"{name} calls of models", len(before), len(after)
        yield f"samples in {name}", sum(before), sum(after)
    if original["batches"] and changed["batches"]:
        sizes = [sum(samples for samples, _ in account["batches"]) for account in (original, changed)]
        yield "samples that loaders gave", sizes[0], sizes[1]


def _sizes(calls: Sequence[tuple[str, int, str, str]], mode: str) -> list[int]:
    return [rows for called, rows, _, _ in calls if called == mode]

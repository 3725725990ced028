"""Whether a changed program still computes the same: losses, outputs and weights of the first steps, under one seed.

Exact changes must agree bit for bit. Close ones within a tolerance for the data type: the root mean square of the
difference, relative to that of the reference, see :data:`TOLERANCES`. The mean square and not the largest difference:
Adam's first updates are nearly signs of gradients, so a rounding error moves single weights by a whole step. A program
that does not even agree with itself in two runs is judged by the tolerances, as widened by its own difference.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unstall.optimize.comparison import TrialFailed, Window, last_line
from unstall.optimize.proposal import Attempt
from unstall.optimize.trial_runner import TrialRunner, Variant

Exactness = Literal["exact", "close"]

TOLERANCES = {"float64": 1e-7, "float32": 1e-3, "bfloat16": 3e-2, "float16": 1e-2}
"""Largest difference for close changes, by the coarser data type of the two, or by that which the changed program
computes in: root mean square of the difference over that of the reference. They allow for another order of summation,
carried through the first steps of training."""

_STEPS = 12
_WIDENING = 4.0  # times the difference between two runs of the original
_SEED = 20260101
_TIMEOUT_S = 180.0
_DTYPES = {"bfloat16": "float32", "float16": "float32"}  # how the child writes them


@dataclass(frozen=True)
class ObservedTensor:
    """One tensor that a run computed."""

    what: str
    step: int
    dtype: str
    shape: tuple[int, ...]
    digest: bytes
    values: bytes

    def array(self) -> npt.NDArray[Any]:
        """The values that were written down: all, or evenly chosen ones of a large tensor."""
        return np.frombuffer(self.values, dtype=_DTYPES.get(self.dtype, self.dtype))


class Unobservable(Exception):
    """A run gave nothing to compare; the message says why."""


def observe(
    runner: TrialRunner,
    variant: Variant,
    kind: str,
    steps: int,
    *,
    check: Mapping[str, Any] | None = None,
) -> list[ObservedTensor]:
    """Run the first steps of a variant and read what they computed. Raises Unobservable.

    ``check``: for the child's part of that name, which proves that what the variant keeps or remembers may be kept.
    """
    plan = {**Window(kind, 0, steps).plan(), "seed": {"seed": _SEED}, "observe": {}, "check": check}
    run = runner.run(variant, plan, timeout=_TIMEOUT_S)
    mismatch = run.folder / "mismatch.txt"
    if mismatch.exists():
        raise Unobservable(mismatch.read_text().strip())
    if run.json("clock.json") is None:
        reason = f"no end after {run.seconds:.0f} s" if run.timed_out else f"exit code {run.status}"
        raise Unobservable(f"{reason}{last_line(run.output)}")
    tensors = list(read(run.folder / "observed.bin"))
    if not tensors:
        raise Unobservable("neither a loss nor an output of a model was seen")
    return tensors


def read(path: Path) -> Iterator[ObservedTensor]:
    """What the child side of unstall wrote of a run, in a folder of unstall's own."""
    try:
        with path.open("rb") as file:
            while True:
                try:
                    yield ObservedTensor(*pickle.load(file))
                except (EOFError, pickle.UnpicklingError):
                    return
    except OSError:
        return


def difference_of(
    original: Sequence[ObservedTensor],
    changed: Sequence[ObservedTensor],
    exactness: Exactness,
    *,
    own: float = 0.0,
    compute_dtypes: Sequence[str] = (),
) -> str | None:
    """Where what two runs computed first differs by more than is allowed, and by how much; None where it never does.

    ``own``: relative difference of two runs of the original, see above. ``compute_dtypes``: data types that the changed
    program computes in, where its results do not show them.
    """
    for a, b in zip(original, changed):
        reason, difference = _difference(a, b)
        if reason is not None:
            return f"{_where(a)}: {reason}"
        if a.digest != b.digest or a.dtype != b.dtype:
            allowed = 0.0 if exactness == "exact" else _allowed(a.dtype, b.dtype, compute_dtypes)
            allowed = max(allowed, _WIDENING * own)
            if difference > allowed or (exactness == "exact" and own == 0.0):
                return f"{_where(a)}: {_by(a, b, difference, allowed)}"
    if len(original) != len(changed):
        first = max(original, changed, key=len)[min(len(original), len(changed))]
        return f"{_where(first)}: {len(changed)} tensors were computed instead of {len(original)}"
    return None


def own_difference(first: list[ObservedTensor], second: list[ObservedTensor]) -> float:
    """Largest relative difference of two runs of one program; 0 when they agree bit for bit."""
    if len(first) != len(second):
        return float("inf")
    return max((_difference(a, b)[1] for a, b in zip(first, second) if a.digest != b.digest), default=0.0)


def _allowed(before: str, after: str, compute_dtypes: Sequence[str]) -> float:
    """The tolerance of the coarsest of the data types; whole numbers must be equal, whatever else is coarse."""
    own = max(TOLERANCES.get(dtype, 0.0) for dtype in (before, after))
    return max(own, *(TOLERANCES[dtype] for dtype in compute_dtypes)) if own and compute_dtypes else own


def _difference(a: ObservedTensor, b: ObservedTensor) -> tuple[str | None, float]:
    """(why they cannot be compared, or None; relative difference)."""
    if a.what != b.what:
        return f"{b.what} was computed instead of {a.what}", 0.0
    if a.shape != b.shape:
        return f"its shape is {list(b.shape)} instead of {list(a.shape)}", 0.0
    if a.digest == b.digest and a.dtype == b.dtype:
        return None, 0.0
    x, y = a.array(), b.array()
    if len(x) != len(y) or not len(x):
        return None, 0.0
    x, y = x.astype(np.float64), y.astype(np.float64)
    if (np.isfinite(x) != np.isfinite(y)).any():
        return "a number became infinite or NaN, or ceased to be", 0.0
    finite = np.isfinite(x)
    if not finite.any():
        return None, 0.0
    size = float(np.sqrt(np.mean(x[finite] ** 2)))
    apart = float(np.sqrt(np.mean((x[finite] - y[finite]) ** 2)))
    return None, apart / (size or 1.0)


def _where(tensor: ObservedTensor) -> str:
    if tensor.what.startswith("weights"):
        return f"after {tensor.step} steps, {tensor.what}"
    return f"step {tensor.step + 1}, {tensor.what.rpartition('.')[0]}"


def _by(a: ObservedTensor, b: ObservedTensor, difference: float, allowed: float) -> str:
    if not difference:
        return "the numbers differ in their last bits" if a.dtype == b.dtype else f"{b.dtype} instead of {a.dtype}"
    limit = f"; {allowed:.1g} is allowed" if allowed else " and must not"
    if a.array().size == 1:
        return f"{float(b.array()[0]):.7g} instead of {float(a.array()[0]):.7g}{limit}"
    return f"differs by {difference:.2g} of its size{limit}"


class Reference:
    """The first steps of the original; :meth:`observe` runs it, then :meth:`judge` compares."""

    def __init__(self, observe: Callable[..., list[ObservedTensor]]):
        self.observe_variant = observe
        self.tensors: list[ObservedTensor] = []
        self.own_difference = 0.0
        """Largest relative difference between two runs of the original."""

    def observe(self, kind: str) -> None:
        """Run the original twice: what it computes, and whether it agrees with itself. Raises TrialFailed."""
        try:
            first = self.observe_variant(Variant(), kind, _STEPS)
            second = self.observe_variant(Variant(), kind, _STEPS)
        except Unobservable as error:
            raise TrialFailed(f"what the program computes could not be observed: {error}") from error
        self.tensors = first
        self.own_difference = own_difference(first, second)

    def judge(self, changed: Variant, kind: str, attempts: Sequence[Attempt]) -> tuple[bool | None, str | None]:
        """Whether a variant computes the same as the original, and why not.

        ``attempts``: all changes that are in it, the new one last. None where the new one changes the training, so
        that the results need not be the same.
        """
        try:
            tensors = self.observe_variant(changed, kind, _STEPS, check=_check(attempts))
        except Unobservable as error:
            return False, f"what it computes could not be compared: {error}"
        if attempts[-1].remedy.exactness == "training-changing":
            return None, None
        # Kept close changes make the whole close: an exact one on top of them is compared with the same tolerance.
        exact = all(attempt.remedy.exactness == "exact" for attempt in attempts)
        exactness: Exactness = "exact" if exact else "close"
        dtypes = [attempt.proposal.compute_dtype for attempt in attempts if attempt.proposal.compute_dtype]
        own = self.own_difference
        why_not = difference_of(self.tensors, tensors, exactness, own=own, compute_dtypes=dtypes)
        return why_not is None, f"it computes something else: {why_not}" if why_not else None


def _check(attempts: Sequence[Attempt]) -> dict[str, Any] | None:
    """What the child's part ``check`` is to prove of these changes; None where they keep and batch nothing."""
    proposals = [attempt.proposal for attempt in attempts]
    memoized = [function for proposal in proposals for function in proposal.memoized_functions]
    if memoized or any(proposal.needs_revisits or proposal.batches_model_calls for proposal in proposals):
        return {"memoized": memoized, "tolerances": TOLERANCES}
    return None

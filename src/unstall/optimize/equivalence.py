"""Whether a changed program still computes the same: losses, outputs and weights of the first steps, under one seed.

Exact changes must agree bit for bit. Close ones within a tolerance for the data type: the root mean square of the
difference, relative to that of the reference, see :data:`TOLERANCES`. The mean square and not the largest difference:
Adam's first updates are nearly signs of gradients, so a rounding error moves single weights by a whole step. A program
that does not even agree with itself in two runs is judged by the tolerances, as widened by its own difference.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unstall.optimize.trial import Window, last_line
from unstall.optimize.workshop import Arm, Workshop

Exactness = Literal["exact", "close"]

TOLERANCES = {"float64": 1e-7, "float32": 1e-3, "bfloat16": 3e-2, "float16": 1e-2, "tf32": 1e-2}
"""Largest difference for close changes, by the coarser data type of the two, or by that which the changed program
computes in: root mean square of the difference over that of the reference. They allow for another order of summation,
carried through the first steps of training."""

_WIDENING = 4.0  # times the difference between two runs of the original
_SEED = 20260101
_DTYPES = {"bfloat16": "float32", "float16": "float32"}  # how the child writes them


@dataclass(frozen=True)
class Noted:
    """One tensor that a run computed."""

    what: str
    step: int
    dtype: str
    shape: tuple[int, ...]
    digest: bytes
    values: bytes

    def array(self) -> npt.NDArray[Any]:
        """The noted values: all, or evenly chosen ones of a large tensor."""
        return np.frombuffer(self.values, dtype=_DTYPES.get(self.dtype, self.dtype))


@dataclass(frozen=True)
class Judgement:
    """The result of a comparison."""

    equivalent: bool
    exact: bool
    compared: int
    """Tensors that were compared."""
    worst: float = 0.0
    """Largest relative difference."""
    why_not: str | None = None


class Unobservable(Exception):
    """A run gave nothing to compare; the message says why."""


def observe(
    workshop: Workshop,
    arm: Arm,
    kind: str,
    steps: int,
    *,
    timeout: float,
    check: dict[str, Any] | None = None,
) -> list[Noted]:
    """Run the first steps of an arm and read what they computed. Raises Unobservable.

    ``check``: for the child's part of that name, which proves that what the arm keeps or remembers may be kept.
    """
    plan = {
        **Window(kind, 0, steps).plan(),
        "seed": {"seed": _SEED},
        "observe": {},
        "check": check,
    }
    ran = workshop.run(arm, plan, timeout=timeout)
    complaints = ran.folder / "cache-mismatch.txt"
    if complaints.exists():
        raise Unobservable(complaints.read_text().strip())
    if ran.json("clock.json") is None:
        reason = f"no end after {ran.seconds:.0f} s" if ran.timed_out else f"exit code {ran.status}"
        raise Unobservable(f"{reason}{last_line(ran.output)}")
    noted = list(read(ran.folder / "observed.bin"))
    if not noted:
        raise Unobservable("neither a loss nor an output of a model was seen")
    return noted


def read(path: Path) -> Iterator[Noted]:
    """The notes of a run, which the child side of unstall wrote in a folder of unstall's own."""
    try:
        with path.open("rb") as file:
            while True:
                try:
                    yield Noted(*pickle.load(file))
                except (EOFError, pickle.UnpicklingError):
                    return
    except OSError:
        return


def judge(
    original: list[Noted],
    changed: list[Noted],
    exactness: Exactness,
    *,
    own: float = 0.0,
    arithmetic: Sequence[str] = (),
) -> Judgement:
    """Compare two runs' notes, in order. ``own``: relative difference of two runs of the original, see above.

    ``arithmetic``: data types that the changed program computes in, where its results do not show them.
    """
    worst, exact = 0.0, True
    for a, b in zip(original, changed):
        reason, difference = _difference(a, b)
        if reason is not None:
            return Judgement(False, False, len(original), worst, f"{_place(a)}: {reason}")
        worst = max(worst, difference)
        if a.digest != b.digest or a.dtype != b.dtype:
            exact = False
            allowed = 0.0 if exactness == "exact" else _allowed(a.dtype, b.dtype, arithmetic)
            allowed = max(allowed, _WIDENING * own)
            if difference > allowed or (exactness == "exact" and own == 0.0):
                return Judgement(False, False, len(original), worst, f"{_place(a)}: {_by(a, b, difference, allowed)}")
    if len(original) != len(changed):
        longer = original if len(original) > len(changed) else changed
        return Judgement(False, False, len(original), worst, f"{_place(longer[min(len(original), len(changed))])}: "
                         f"{len(changed)} tensors were computed instead of {len(original)}")  # fmt: skip
    return Judgement(True, exact, len(original), worst)


def own_difference(first: list[Noted], second: list[Noted]) -> float:
    """Largest relative difference of two runs of one program; 0 when they agree bit for bit."""
    if len(first) != len(second):
        return float("inf")
    return max((_difference(a, b)[1] for a, b in zip(first, second) if a.digest != b.digest), default=0.0)


def tolerance(*dtypes: str) -> float:
    """The tolerance of the coarsest of the data types; whole numbers must be equal."""
    return max(TOLERANCES.get(dtype, 0.0) for dtype in dtypes)


def _allowed(before: str, after: str, arithmetic: Sequence[str]) -> float:
    """The tolerance for a tensor; coarse arithmetic counts for what is not a whole number."""
    own = tolerance(before, after)
    return max(own, tolerance(*arithmetic)) if own and arithmetic else own


def _difference(a: Noted, b: Noted) -> tuple[str | None, float]:
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


def _place(noted: Noted) -> str:
    what = noted.what.rpartition(".")[0] if noted.what.startswith(("loss", "output")) else noted.what
    return f"step {noted.step + 1}, {what}" if not what.startswith("weights") else f"after {noted.step} steps, {what}"


def _by(a: Noted, b: Noted, difference: float, allowed: float) -> str:
    if not difference:
        return "the numbers differ in their last bits" if a.dtype == b.dtype else f"{b.dtype} instead of {a.dtype}"
    limit = f"; {allowed:.1g} is allowed" if allowed else " and must not"
    if a.array().size == 1:
        return f"{float(b.array()[0]):.7g} instead of {float(a.array()[0]):.7g}{limit}"
    return f"differs by {difference:.2g} of its size{limit}"

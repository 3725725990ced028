"""How the same two runs of a program are: exact (bit for bit), close (no further apart than rounding), or neither.

What rounding may do is measured of each program: some runs of the original whose weights and inputs are off by one unit
in the last place, at random (:mod:`unstall.child.trial.perturb`). Of every observed tensor these give the noise of each
element. A run is close when

- each tensor differs by no more than ``SIZE`` times its noise, element by element. A few weights may go further: those
  whose gradient is near zero when Adam takes its sign. These are no further off than updates in both directions are;
- whole numbers are equal, wherever they are in all the runs that rounding alone tells apart; and
- the difference has no direction. Its coefficient along the weights themselves, along what training has changed in
  them, and along an output is what random signs give. Weight decay that is missing is less than the noise of any one
  weight, but shrinks them all.

Where two numbers are nearly equal, rounding may tip over which is the larger (in max-pooling, at the edge of a ReLU).
From then on a run is further off than the original's runs that saw nothing tip, though nothing else is computed. It is
a matter of chance: :mod:`unstall.optimize.equivalence` looks at the same change under other seeds.

The coefficient ``c`` of ``difference ≈ c · direction`` is that of least squares with weights 1/noise²: the matched
filter of signal detection (Kay, Fundamentals of Statistical Signal Processing II, 1998, ch. 4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unstall.optimize import thresholds
from unstall.records.remedies import Sameness

Array = npt.NDArray[np.float64]

_WRITTEN_AS = {"bfloat16": "float32", "float16": "float32"}  # by the child
_EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10}
_WEIGHTS = "weights."


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
        return np.frombuffer(self.values, dtype=_WRITTEN_AS.get(self.dtype, self.dtype))

    def is_like(self, other: ObservedTensor) -> bool:
        """Whether the two can be compared number by number."""
        return (self.what, self.step, self.shape, self.dtype) == (other.what, other.step, other.shape, other.dtype)

    def equals(self, other: ObservedTensor) -> bool:
        """Whether all bits agree."""
        return self.is_like(other) and self.digest == other.digest

    @property
    def is_weights(self) -> bool:
        """Whether it is a model's parameter or buffer."""
        return self.what.startswith(_WEIGHTS)

    @property
    def eps(self) -> float:
        """From 1 to the next larger number of its data type; 0 for whole numbers."""
        return _EPS.get(self.dtype, 0.0)

    @property
    def group(self) -> tuple[int, str]:
        """The same for all weights of one moment."""
        return self.step, _WEIGHTS if self.is_weights else self.what

    @property
    def moment(self) -> str:
        """For a person: when in the run it was computed."""
        if not self.is_weights:
            return f"step {self.step + 1}"
        return f"after step {self.step}" if self.step else "before the first update"

    @property
    def place(self) -> str:
        """For a person: where in the run it is."""
        name = self.what.rpartition(".")[0]
        return f"{self.moment}, {name.split('.', 2)[2] if self.is_weights else name}"


@dataclass(frozen=True)
class Verdict:
    """How the same a run is as the original."""

    sameness: Sameness | None
    """None where they cannot be compared: other tensors, or numbers that are no longer finite."""
    ratio: float = 0.0
    """The largest difference over its limit: at most 1 where it is close."""
    reason: str | None = None
    """Why it is not close, for a person: where the two first differ by more than rounding, and by how much."""
    says_nothing: bool = False
    """Whether the original's own runs are too far apart to tell."""
    is_late: bool = False
    """Whether it is not close, and in all of the first step it was."""


class _Ratio(NamedTuple):
    """A difference over its limit."""

    value: float
    step: int
    words: str
    """For a person."""


class Limits:
    """What rounding may change in a run of the original."""

    def __init__(self, original: Sequence[ObservedTensor], perturbed: Sequence[Sequence[ObservedTensor]]):
        """``perturbed``: runs of the original off by one unit in the last place, and any that differ by themselves."""
        self.original = list(original)
        self.values = [tensor.array().astype(np.float64) for tensor in original]
        self.deviations = [list(self._deviations(run)) for run in perturbed]
        self.noise = self._noise()
        self.first_seen = {tensor.what: index for index, tensor in reversed(list(enumerate(self.original)))}
        self.last_seen = {tensor.what: index for index, tensor in enumerate(self.original)}

    def judge(self, changed: Sequence[ObservedTensor]) -> Verdict:
        """How the same another run is as the original."""
        if len(changed) == len(self.original) and all(a.equals(b) for a, b in zip(self.original, changed)):
            return Verdict("exact")
        problem = self._problem(changed)
        if problem is not None:
            return Verdict(None, math.inf, problem)
        noise = self._too_noisy()
        if noise is not None:
            return Verdict(None, math.inf, noise, says_nothing=True)
        ratios = list(self._ratios(changed))
        largest = max(ratio.value for ratio in ratios)
        beyond = next((ratio for ratio in ratios if ratio.value > 1), None)
        if beyond is None:
            return Verdict("close", largest)
        return Verdict("reduced", largest, beyond.words, is_late=beyond.step > self.original[0].step)

    def _problem(self, changed: Sequence[ObservedTensor]) -> str | None:
        """Why the runs cannot be compared number by number; None where they can."""
        for index, (a, b) in enumerate(zip(self.original, changed)):
            if a.what != b.what:
                return f"{a.place}: {b.what} was computed instead of {a.what}"
            if a.shape != b.shape:
                return f"{a.place}: its shape is {list(b.shape)} instead of {list(a.shape)}"
            lost = np.isfinite(b.array()) != np.isfinite(self.values[index])
            if (lost & np.isfinite(self.noise[index])).any():
                return f"{a.place}: a number became infinite or NaN, or ceased to be"
        if len(changed) != len(self.original):
            first = max(self.original, changed, key=len)[min(len(self.original), len(changed))]
            return f"{first.place}: {len(changed)} tensors were computed instead of {len(self.original)}"
        return None

    def _too_noisy(self) -> str | None:
        """Why nothing can be said of this program: rounding changes all of its first step as bfloat16 would."""
        shares = [
            thresholds.SIZE * float(np.median(self.noise[index])) / _size(self.values[index])
            for index, tensor in enumerate(self.original)
            if tensor.step == self.original[0].step and not tensor.is_weights and 0 < tensor.eps < thresholds.COARSE
            and _size(self.values[index])
        ]  # fmt: skip
        if not shares or min(shares) <= thresholds.COARSE:
            return None
        noise = min(shares) / thresholds.SIZE
        return (
            f"rounding or chance changes the original by {noise:.1g} of its size in the first step, "
            "so nothing can be said: does it seed its random numbers?"
        )

    # ------------------------------------------------------------------ what rounding does

    def _deviations(self, run: Sequence[ObservedTensor]) -> Iterator[Array]:
        """Of each tensor of a perturbed run from the original's, up to where it computes other ones."""
        for a, b, x in zip(self.original, run, self.values):
            if not a.is_like(b):
                return
            yield _difference(b.array(), x)

    def _noise(self) -> list[Array]:
        """Of each element of each tensor: never less than is typical of the tensor so far, or than a last place."""
        typical: dict[str, float] = {}
        noise = []
        for index, tensor in enumerate(self.original):
            reached = [abs(deviations[index]) for deviations in self.deviations if index < len(deviations)]
            spread: Array = np.max(reached, axis=0) if reached else np.zeros_like(self.values[index])
            if tensor.eps:
                middle = float(np.median(spread)) if spread.size else 0.0
                typical[tensor.what] = max(middle, typical.get(tensor.what, 0.0))
                spread = np.maximum(spread, max(typical[tensor.what], tensor.eps * _size(self.values[index])))
            noise.append(spread)
        return noise

    # ------------------------------------------------------------------ differences over their limits

    def _ratios(self, changed: Sequence[ObservedTensor]) -> Iterator[_Ratio]:
        """In the order of the run."""
        differences = [_difference(b.array(), x) for b, x in zip(changed, self.values)]
        for _, group in groupby(range(len(differences)), key=lambda index: self.original[index].group):
            places = list(group)
            for index in places:
                ratio, original = self._ratio_of_sizes(index, differences[index]), self.original[index]
                yield _Ratio(ratio, original.step, f"{original.place}: {self._by(index, changed[index], ratio)}")
            yield from self._ratios_along(places, differences)

    def _ratio_of_sizes(self, index: int, difference: Array) -> float:
        """Of the element that is furthest beyond its noise, a few stray weights left out."""
        tensor, noise = self.original[index], self.noise[index]
        differing = difference != 0
        if not tensor.eps:
            return math.inf if (differing & (noise == 0)).any() else 0.0
        if not differing.any():
            return 0.0
        with np.errstate(divide="ignore"):
            ratios = np.divide(abs(difference), noise, out=np.zeros_like(noise), where=differing)
        if not tensor.is_weights or _longest_row(ratios > thresholds.SIZE) >= thresholds.STRAY_ROW:
            return float(ratios.max() / thresholds.SIZE)
        stray = int(len(ratios) * thresholds.STRAY_SHARE)
        too_far = ratios[abs(difference) > thresholds.STRAY_UPDATES * self._largest_update(tensor.what)]
        return float(max([np.sort(ratios)[-1 - stray], *too_far]) / thresholds.SIZE)

    def _largest_update(self, what: str) -> float:
        """By which training changed any of these weights in the whole run; infinite where they were seen once."""
        first, last = self.first_seen[what], self.last_seen[what]
        return float(abs(self.values[last] - self.values[first]).max()) if last > first else math.inf

    def _ratios_along(self, places: Sequence[int], differences: Sequence[Array]) -> Iterator[_Ratio]:
        """Of the coefficients along what the tensors at these places are, and along what has changed in them."""
        places = [index for index in places if self.original[index].eps]
        if not places:
            return
        first = self.original[places[0]]
        noise = np.concatenate([self.noise[index] for index in places])
        if noise.size < thresholds.LEAST_ELEMENTS:
            return
        ulps = thresholds.SYSTEMATIC_ULPS if first.is_weights else thresholds.OUTPUT_ULPS
        eps = max(self.original[index].eps for index in places)
        for name, direction in self._directions(places):
            matched = MatchedFilter(direction, noise)
            if not matched.power:
                continue
            reached = [
                abs(matched.coefficient(np.concatenate([deviations[index] for index in places])))
                for deviations in self.deviations
                if places[-1] < len(deviations)
            ]
            limit = max(ulps * eps, thresholds.DIRECTION * max([matched.deviation, *reached]))
            coefficient = matched.coefficient(np.concatenate([differences[index] for index in places]))
            yield _Ratio(
                abs(coefficient) / limit,
                first.step,
                f"{first.moment}: {name} differ by {coefficient:+.2g} of their size, all in one direction; "
                f"rounding makes that {limit:.1g} at most",
            )

    def _directions(self, places: Sequence[int]) -> Iterator[tuple[str, Array]]:
        values = np.concatenate([self.values[index] for index in places])
        if not self.original[places[0]].is_weights:
            yield "the outputs", values
            return
        yield "the weights", values
        yield (
            "the updates of the weights",
            values - np.concatenate([self.values[self.first_seen[self.original[index].what]] for index in places]),
        )

    def _by(self, index: int, changed: ObservedTensor, ratio: float) -> str:
        """By how much a tensor differs, in words."""
        original = self.original[index]
        if not original.eps:
            return "whole numbers differ that rounding does not change"
        limit = f"{ratio:.2g} times as far as rounding goes"
        if original.dtype != changed.dtype:
            limit = f"{changed.dtype} instead of {original.dtype}, {limit}"
        if self.values[index].size == 1:
            return f"{float(changed.array()[0]):.7g} instead of {float(self.values[index][0]):.7g}, {limit}"
        apart = _size(_difference(changed.array(), self.values[index])) / (_size(self.values[index]) or 1.0)
        return f"differs by {apart:.2g} of its size, {limit}"


class MatchedFilter:
    """How much of a difference goes in one direction, where each of its elements is as noisy as is known.

    An element that goes further astray than noise may counts as one that goes so far.
    """

    def __init__(self, direction: Array, noise: Array):
        known = (noise > 0) & np.isfinite(noise) & np.isfinite(direction)
        weights = np.divide(direction, noise**2, out=np.zeros_like(noise), where=known)
        self.power = float(np.sum(weights[known] * direction[known]))
        self.weights, self.furthest = weights, thresholds.SIZE * noise

    @property
    def deviation(self) -> float:
        """Standard deviation of the coefficient where the elements are independent."""
        return 1 / math.sqrt(self.power)

    def coefficient(self, difference: Array) -> float:
        """Of the direction in a difference."""
        return float(np.sum(self.weights * np.clip(difference, -self.furthest, self.furthest))) / self.power


def _difference(values: npt.NDArray[Any], original: Array) -> Array:
    """Element by element; 0 where both are the same infinity or NaN, infinite where only one is."""
    with np.errstate(invalid="ignore"):
        difference: Array = values.astype(np.float64) - original
    same = ~np.isfinite(values) & ~np.isfinite(original)
    difference[same] = 0.0
    difference[np.isnan(difference)] = math.inf
    return difference


def _longest_row(flags: npt.NDArray[np.bool_]) -> int:
    """How many that are true follow each other at most."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return int(np.max(edges[1::2] - edges[::2], initial=0))


def _size(values: Array) -> float:
    """Root mean square of the finite ones."""
    finite = values[np.isfinite(values)]
    return math.sqrt(float(np.mean(finite**2))) if finite.size else 0.0

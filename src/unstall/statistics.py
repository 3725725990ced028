"""Ratios of step times with honest intervals, and robust slopes. Pure NumPy; knows nothing of the project.

Every ratio here is ``a / b``: time of the baseline over time of the variant, so above 1 the variant is faster.
All averaging is done on logarithms (a ratio and its inverse then weigh the same), except over the steps within one
series, where the mean step is what throughput is made of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Series = Sequence[tuple[float, float]]
"""Points (x, y)."""

_FEW = 8  # blocks; below, resampling so few values cannot reach the tails that the level asks for
_RESAMPLES = 4000
_MAX_POINTS = 400  # of a series; a longer one is thinned first, for its pairs grow with the square
_PRIOR_BLOCKS = 0.1  # c² of the confidence sequence: narrowest from four blocks to about thirty


@dataclass(frozen=True)
class Ratio:
    """A ratio and its interval, and how many independent blocks it rests on."""

    value: float
    low: float
    high: float
    blocks: int

    def excludes(self, ratio: float = 1.0) -> bool:
        """Whether the interval excludes this ratio; for 1: whether the two differ."""
        return not self.low <= ratio <= self.high

    @property
    def half_width(self) -> float:
        """Half the interval, in logarithms: 0.05 is about ± 5 %."""
        if self.low <= 0 or math.isinf(self.high):
            return math.inf
        return (math.log(self.high) - math.log(self.low)) / 2


def abba_log_ratios(a_segments: ArrayLike, b_segments: ArrayLike) -> Floats:
    """One log-ratio for each ABBA block.

    ``a_segments`` and ``b_segments`` are the mean step times of the segments, two a block, in the order they ran.
    A drift that is linear over a block cancels, because both conditions have the same mean position in it.
    Raises ValueError where the segments do not make whole blocks or a time is not positive.
    """
    a, b = np.asarray(a_segments, float).ravel(), np.asarray(b_segments, float).ravel()
    if len(a) != len(b) or len(a) % 2:
        raise ValueError(f"an ABBA block has two segments of each condition, not {len(a)} and {len(b)} in all")
    if len(a) and not (min(a.min(), b.min()) > 0 and np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("a segment's step time must be positive")
    blocks: Floats = (np.log(a) - np.log(b)).reshape(-1, 2).mean(axis=1)
    return blocks


def ratio_of_blocks(log_ratios: ArrayLike, *, level: float = 0.95, seed: int = 0) -> Ratio:
    """The ratio over independent blocks, for a number of blocks that was set beforehand.

    From eight blocks on an expanded percentile bootstrap (Hesterberg, "What Teachers Should Know About the
    Bootstrap", The American Statistician 69(4), 2015): its tail is Φ(-t·√(n/(n-1))), which makes up for the
    narrowness of the plain one in small samples. For fewer, Student's t. Of one block nothing is known: (0, ∞).
    """
    values = _checked(log_ratios)
    if len(values) < 2:
        return Ratio(float(np.exp(values[0])), 0.0, math.inf, 1)
    if len(values) < _FEW:
        half = student_quantile((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
        return _ratio(values, values.mean() - half, values.mean() + half)
    generator = np.random.default_rng(seed)
    means = values[generator.integers(0, len(values), (_RESAMPLES, len(values)))].mean(axis=1)
    return _ratio(values, *np.quantile(means, _expanded_tails(level, len(values))))


def anytime(log_ratios: ArrayLike, *, level: float = 0.95) -> Ratio:
    """The ratio with an interval that stays valid however often one looks, and stops when it suits.

    A confidence sequence for Gaussian values of unknown variance: the interval of all means m that the mixture
    likelihood ratio of the t-statistic (prior on the effect size N(0, 1/c²)) does not reject at 1/α,
    Wang and Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance",
    arXiv 2310.03722. It is exact at every n, where the asymptotic sequence of Waudby-Smith et al. (Annals of
    Statistics 52(6), 2024), half-width σ√[((nρ²+1)/(n²ρ²))·ln((nρ²+1)/α²)], undercovers for the few blocks that
    an experiment has; for many blocks the two agree.
    """
    values = _checked(log_ratios)
    n, c2, alpha = len(values), _PRIOR_BLOCKS, 1 - level
    bound = ((n + c2) / (c2 * alpha**2)) ** (1 / n)
    if n < 2 or bound * c2 >= n + c2:
        return Ratio(float(np.exp(values.mean())), 0.0, math.inf, n)
    half = values.std() * math.sqrt((n + c2) * (bound - 1) / (n + c2 - bound * c2))
    return _ratio(values, values.mean() - half, values.mean() + half)


def ratio_of_series(a: ArrayLike, b: ArrayLike, *, level: float = 0.95, seed: int = 0) -> Ratio:
    """The ratio of the means of two unpaired series of step times, each in the order it ran.

    Steps that follow each other are alike, so whole runs of them are drawn: the circular block bootstrap of Politis
    and Romano (1992), with blocks of about the length over which the series is autocorrelated. It knows only the
    noise within the two series, not that between runs: what differs from run to run needs several runs.
    ``blocks`` is the number of such blocks in the shorter series. Raises ValueError for fewer than two steps.
    """
    first, second = _checked(a), _checked(b)
    if min(len(first), len(second)) < 2:
        raise ValueError("a series of step times needs at least two steps")
    if min(first.min(), second.min()) <= 0:
        raise ValueError("a step time must be positive")
    generator = np.random.default_rng(seed)
    blocks = min(len(first) // _block_length(first), len(second) // _block_length(second))
    spread = np.log(_resampled_means(first, generator)) - np.log(_resampled_means(second, generator))
    value = math.log(first.mean()) - math.log(second.mean())
    low, high = np.quantile(spread, _expanded_tails(level, max(2, blocks)))
    return Ratio(math.exp(value), math.exp(min(low, value)), math.exp(max(high, value)), blocks)


def smallest_detectable(ratio: Ratio, *, level: float = 0.95, power: float = 0.8) -> float:
    """The smallest speed-up that a measurement as precise as this one finds four times out of five.

    The usual minimum detectable effect, (z_level + z_power) standard errors; infinite where nothing is known.
    """
    normal = NormalDist()
    wanted = normal.inv_cdf((1 + level) / 2)
    return math.exp(ratio.half_width * (wanted + normal.inv_cdf(power)) / wanted)


def autocorrelation(series: Floats) -> float:
    """The first autocorrelation; 0 of a constant series."""
    centred = series - series.mean()
    variance = float(centred @ centred)
    return float(centred[1:] @ centred[:-1]) / variance if variance > 0 else 0.0


def student_quantile(probability: float, degrees: int) -> float:
    """Quantile of Student's t for ``probability`` in [0.5, 1); SciPy is not needed for this alone.

    With x = √ν·tan θ the density becomes cos^(ν-1) θ, whose integral over a fine grid is inverted by interpolation;
    good to 4 digits for the levels in use.
    """
    angles = np.linspace(0.0, math.pi / 2, 20001)
    density = np.cos(angles) ** (degrees - 1)
    cumulated = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    angle = np.interp(2 * probability - 1, cumulated / cumulated[-1], angles)
    return float(math.sqrt(degrees) * math.tan(angle))


def _checked(values: ArrayLike) -> Floats:
    array: Floats = np.asarray(values, float).ravel()
    if not len(array) or not np.isfinite(array).all():
        raise ValueError("a ratio needs at least one block, and finite numbers")
    return array


def _ratio(values: Floats, low: float, high: float) -> Ratio:
    return Ratio(math.exp(values.mean()), math.exp(low), math.exp(high), len(values))


def _expanded_tails(level: float, n: int) -> Sequence[float]:
    student = student_quantile((1 + level) / 2, n - 1)
    tail = NormalDist().cdf(-student * math.sqrt(n / (n - 1)))
    return [tail, 1 - tail]


def _block_length(series: Floats) -> int:
    """About the steps over which a series is autocorrelated, at most a quarter of it.

    For an AR(1) of coefficient φ the best length for a mean is (2φ/(1-φ²))^⅔ n^⅓ (Politis and White, 2004, for the
    circular bootstrap up to the constant (3/2)^⅓); φ is taken from the first autocorrelation.
    """
    n = len(series)
    phi = min(max(autocorrelation(series), 0.0), 0.97)
    length = (1.5 * n) ** (1 / 3) * (2 * phi / (1 - phi**2)) ** (2 / 3)
    return int(min(max(1, math.ceil(length)), max(1, n // 4)))


def _resampled_means(series: Floats, generator: np.random.Generator) -> Floats:
    n, length = len(series), _block_length(series)
    pieces = math.ceil(n / length)
    around = np.concatenate([[0.0], np.cumsum(np.concatenate([series, series[:length]]))])
    sums = around[length:][:n] - around[:-length][:n]
    starts = generator.integers(0, n, (_RESAMPLES // 2, pieces))
    means: Floats = sums[starts].sum(axis=1) / (pieces * length)
    return means


def slope(series: Series, confidence: float = 0.95) -> tuple[float, float, float]:
    """Robust slope of y over x, with its interval at this confidence: (slope, low, high).

    The median of the slopes between all pairs of points (Theil), with Sen's interval, which rests
    on Kendall's rank test: P. K. Sen (1968), "Estimates of the regression coefficient based on
    Kendall's tau", J. Am. Stat. Assoc. 63, 1379-1389. Up to 29 % of the points may be anything.
    Points are taken as independent; where neighbours resemble each other, it is too narrow.

    Args:
        series: (x, y) points in any order; pairs of equal x are left out.
        confidence: of the interval.

    Raises:
        ValueError: fewer than two different x.
    """
    x, y = columns(series)
    first, second = np.triu_indices(len(x), k=1)
    run = x[second] - x[first]
    apart = run > 0
    if not apart.any():
        raise ValueError("a slope needs points at two different x or more")
    slopes = np.sort((y[second] - y[first])[apart] / run[apart])
    # Variance of Kendall's S; points of equal x compare with nothing.
    ties = np.unique(x, return_counts=True)[1]
    size = len(x)
    variance = size * (size - 1) * (2 * size + 5) - (ties * (ties - 1) * (2 * ties + 5)).sum()
    half = NormalDist().inv_cdf(0.5 + confidence / 2) * math.sqrt(variance / 18)
    below, above = (len(slopes) - half) / 2, (len(slopes) + half) / 2
    low = slopes[round(below) - 1] if round(below) >= 1 else -math.inf
    high = slopes[round(above)] if round(above) < len(slopes) else math.inf
    return float(np.median(slopes)), float(low), float(high)


def columns(series: Series) -> tuple[Floats, Floats]:
    """The series by x, thinned to at most 400 points."""
    points = np.asarray(sorted(series), dtype=np.float64).reshape(-1, 2)
    if len(points) > _MAX_POINTS:
        chunks = np.array_split(points, _MAX_POINTS)
        points = np.array([np.median(chunk, axis=0) for chunk in chunks])
    return points[:, 0], points[:, 1]

"""Ratios and their intervals: algebra by hypothesis, coverage by seeded simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unstall.statistics import (
    Ratio,
    abba_log_ratios,
    anytime,
    ratio_of_blocks,
    ratio_of_series,
    smallest_detectable,
    student_quantile,
)

times = st.floats(1e-5, 1e3)
logs = st.lists(st.floats(-3, 3), min_size=2, max_size=30)


@given(st.lists(st.tuples(times, times, times, times), min_size=1, max_size=8))
def test_swapping_the_conditions_inverts_the_ratio(blocks):
    a = [t for block in blocks for t in (block[0], block[3])]
    b = [t for block in blocks for t in block[1:3]]
    assert abba_log_ratios(a, b) == pytest.approx(-abba_log_ratios(b, a))


@given(times, st.floats(0, 0.2), st.integers(1, 5))
def test_a_drift_that_is_linear_in_the_logarithm_cancels(base, drift, blocks):
    segments = [base * math.exp(drift * i) for i in range(4 * blocks)]
    a = [segments[4 * k + i] for k in range(blocks) for i in (0, 3)]
    b = [segments[4 * k + i] for k in range(blocks) for i in (1, 2)]
    assert abba_log_ratios(a, b) == pytest.approx(np.zeros(blocks), abs=1e-9)


@pytest.mark.parametrize(
    ("a", "b"), [([1.0], [1.0]), ([1, 2], [1, 2, 3, 4]), ([1, 0], [1, 1]), ([1, math.nan], [1, 1])]
)
def test_segments_that_make_no_blocks_are_refused(a, b):
    with pytest.raises(ValueError):
        abba_log_ratios(a, b)


@given(logs, st.integers(0, 5))
@settings(max_examples=30, deadline=None)
def test_the_interval_holds_the_ratio_and_is_reproducible(values, seed):
    for estimate in (ratio_of_blocks(values, seed=seed), anytime(values)):
        assert estimate.low <= estimate.value * (1 + 1e-9)
        assert estimate.value <= estimate.high * (1 + 1e-9)
        assert estimate.value == pytest.approx(math.exp(np.mean(values)))
        assert estimate.blocks == len(values)
    assert ratio_of_blocks(values, seed=seed) == ratio_of_blocks(values, seed=seed)


@given(logs)
@settings(max_examples=30, deadline=None)
def test_peeking_costs_width(values):
    assert anytime(values).half_width >= ratio_of_blocks(values).half_width * 0.999


def test_one_block_tells_nothing():
    assert ratio_of_blocks([0.7]) == Ratio(math.exp(0.7), 0.0, math.inf, 1)
    assert anytime([0.7]).high == math.inf
    assert smallest_detectable(anytime([0.7])) == math.inf


@pytest.mark.parametrize("function", [ratio_of_blocks, anytime])
@pytest.mark.parametrize("values", [[], [math.inf, 1.0]])
def test_no_blocks_are_refused(function, values):
    with pytest.raises(ValueError):
        function(values)


@pytest.mark.parametrize(
    ("probability", "degrees", "quantile"),
    [(0.975, 1, 12.7062), (0.975, 4, 2.77645), (0.975, 30, 2.04227), (0.95, 9, 1.83311)],
)
def test_student_quantiles_are_the_tables(probability, degrees, quantile):
    assert student_quantile(probability, degrees) == pytest.approx(quantile, rel=2e-4)


def _gaussian(generator, n):
    return generator.normal(0.3, 0.1, n)


def _skewed(generator, n):
    """Blocks now and then slowed by something else: a lognormal tail on a normal core."""
    return 0.3 + generator.normal(0, 0.05, n) + 0.05 * (generator.lognormal(0, 0.7, n) - math.exp(0.245))


@pytest.mark.parametrize(("draw", "least"), [(_gaussian, 0.93), (_skewed, 0.88)])
@pytest.mark.parametrize("n", [3, 5, 8, 16])
def test_coverage_of_blocks(draw, least, n):
    generator = np.random.default_rng(n)
    hits = sum(
        estimate.low <= math.exp(0.3) <= estimate.high
        for estimate in (ratio_of_blocks(draw(generator, n)) for _ in range(400))
    )
    assert hits / 400 >= least


def test_coverage_while_peeking():
    """The anytime interval holds the truth at all of thirty looks, 95 times in 100; a fixed one would not."""
    generator = np.random.default_rng(1)

    def held(interval, values):
        looks = (interval(values[:n]) for n in range(3, 33))
        return all(look.low <= math.exp(0.3) <= look.high for look in looks)

    runs = [_gaussian(generator, 32) for _ in range(300)]
    assert np.mean([held(anytime, run) for run in runs]) >= 0.94


@pytest.mark.parametrize("deviation", [1e-3, 10.0])
def test_coverage_over_the_whole_path(deviation):
    """From the second block to the sixtieth, whatever the scale of the noise: the truth leaves few of the paths ever."""
    generator = np.random.default_rng(2)
    truth = 0.7 * deviation
    held = 0
    for values in generator.normal(truth, deviation, (400, 60)):
        looks = [anytime(values[:n]) for n in range(2, 61)]
        held += all(look.low <= math.exp(truth) <= look.high for look in looks)
    assert held / 400 >= 0.95


def _mixture_ratio(values, mean, c2):
    """Likelihood ratio, by integration: effect sizes of N(0, 1/c²) over none; the scale by its Haar prior in both."""
    logs = np.linspace(-5, 5, 801)[:, None] + np.log(np.std(values))
    effects = np.linspace(-40, 40, 4001)
    z = (np.asarray(values) - mean)[:, None, None] / np.exp(logs)
    prior = np.exp(-c2 * effects**2 / 2) * math.sqrt(c2 / (2 * math.pi)) * (effects[1] - effects[0])
    # ∑(z-δ)² in sums of z and z², so that no array of all three is needed
    n, first, second = len(values), z.sum(0), (z**2).sum(0)
    density = np.exp(-n * logs - second / 2)
    ratios = np.exp(-n * logs - (second - 2 * first * effects + n * effects**2) / 2) @ prior
    return ratios.sum() / density.sum()


@pytest.mark.parametrize("n", [3, 6])
def test_the_anytime_interval_ends_where_the_mixture_of_likelihood_ratios_says_so(n):
    values = np.random.default_rng(n).normal(0.2, 0.3, n)
    interval = anytime(values)
    for end in (interval.low, interval.high):
        assert _mixture_ratio(values, math.log(end), c2=0.1) == pytest.approx(20.0, rel=0.02)


def test_for_many_blocks_it_is_the_asymptotic_confidence_sequence():
    """Robbins' normal mixture with σ estimated: Waudby-Smith et al. 2024, after Howard et al. 2021."""
    n, rho2 = 5000, 1 / 0.1
    values = np.random.default_rng(0).normal(0.0, 0.2, n)
    half = values.std() * math.sqrt((n * rho2 + 1) / (n**2 * rho2) * math.log((n * rho2 + 1) / 0.05**2))
    assert anytime(values).half_width == pytest.approx(half, rel=0.01)


def _autocorrelated(generator, n, phi, mean):
    noise = generator.normal(0, 0.1, n + 50)
    for i in range(1, n + 50):
        noise[i] += phi * noise[i - 1]
    return mean * (1 + noise[50:])


@pytest.mark.parametrize("phi", [0.0, 0.6])
def test_coverage_of_series(phi):
    generator = np.random.default_rng(7)
    hits = 0
    for _ in range(200):
        a, b = _autocorrelated(generator, 120, phi, 2.0), _autocorrelated(generator, 80, phi, 1.0)
        estimate = ratio_of_series(a, b)
        hits += estimate.low <= 2.0 <= estimate.high
    assert hits / 200 >= 0.9


@pytest.mark.parametrize(("a", "b"), [([1.0], [1.0, 2.0]), ([1.0, -1.0], [1.0, 2.0]), ([], [])])
def test_series_that_are_no_step_times_are_refused(a, b):
    with pytest.raises(ValueError):
        ratio_of_series(a, b)


def test_what_differs_is_excluded_and_what_does_not_is_not():
    assert ratio_of_blocks([0.5, 0.52, 0.49, 0.5]).excludes()
    assert not ratio_of_blocks([0.05, -0.04, 0.02, -0.03]).excludes()


def test_the_smallest_detectable_speed_up_shrinks_with_the_noise():
    rough, fine = ratio_of_blocks([0.1, -0.1, 0.2, 0.0]), ratio_of_blocks([0.01, -0.01, 0.02, 0.0])
    assert 1 < smallest_detectable(fine) < smallest_detectable(rough)

"""When two runs are exact, close or neither: numbers made for it, and small programs that train."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest

from unstall.optimize.sameness import Limits, ObservedTensor

EPS = 2.0**-23


def tensor(values, what="output.0", step=0, dtype="float32"):
    array = np.asarray(values, dtype="float32" if dtype == "bfloat16" else dtype)
    return ObservedTensor(what, step, dtype, array.shape, hashlib.blake2b(array.tobytes()).digest(), array.tobytes())


def off_by_one_place(run, seed):
    """A run of which each number is one place up or down."""
    rng = np.random.default_rng(seed)
    return [
        tensor(one.array() * (1 + EPS * rng.choice([-1, 1], one.array().shape)), one.what, one.step, one.dtype)
        for one in run
    ]


def judged(original, changed):
    return Limits(original, [off_by_one_place(original, seed) for seed in range(4)]).judge(changed)


def numbers(count=2000, seed=9):
    return np.random.default_rng(seed).normal(size=count)


def test_the_same_bits_are_exact():
    run = [tensor([1.0, 2.0]), tensor([0.5], step=1)]
    assert judged(run, list(run)).sameness == "exact"


def test_rounding_is_close_and_more_is_not():
    x, noise = numbers(), numbers(seed=3)
    close = judged([tensor(x)], [tensor(x + 10 * EPS * noise)])
    assert close.sameness == "close" and 0 < close.ratio < 1 and close.reason is None
    coarse = judged([tensor(x)], [tensor(x.astype("float16"))])
    assert coarse.sameness == "reduced" and coarse.ratio > 1 and "rounding" in coarse.reason


def test_what_is_less_than_the_noise_of_any_number_shows_in_all_of_them():
    original = [tensor(numbers(), "weights.0.w.0", step) for step in (0, 12)]
    noisy = [original[0], tensor(original[1].array() + 30 * EPS * numbers(seed=3), "weights.0.w.0", 12)]
    shrunk = [original[0], tensor(original[1].array() * (1 - 20 * EPS), "weights.0.w.0", 12)]
    assert judged(original, noisy).sameness == "close"
    verdict = judged(original, shrunk)
    assert verdict.sameness == "reduced" and "all in one direction" in verdict.reason


def test_updates_that_are_all_too_small_show():
    x, update = numbers() + 3, 1e-2 * numbers(seed=5)
    original = [tensor(x, "weights.0.w.0", 0), tensor(x + update, "weights.0.w.0", 1)]
    changed = [original[0], tensor(x + update * (1 - 1e-3), "weights.0.w.0", 1)]
    assert "updates of the weights" in judged(original, changed).reason


def test_a_whole_row_of_weights_does_not_go_astray_by_chance():
    x = np.random.default_rng(0).normal(size=4000).astype("float32")
    row, scattered = x.copy(), x.copy()
    row[64:80] += 0.01
    scattered[64:384:20] += 0.01
    assert judged([tensor(x, "weights.0.w.0")], [tensor(row, "weights.0.w.0")]).sameness == "reduced"
    assert judged([tensor(x, "weights.0.w.0")], [tensor(scattered, "weights.0.w.0")]).sameness == "close"


def test_a_few_weights_may_go_astray_and_no_output():
    x = numbers()
    astray = x.copy()
    astray[:5] += 0.01
    assert judged([tensor(x, "weights.0.w.0")], [tensor(astray, "weights.0.w.0")]).sameness == "close"
    assert judged([tensor(x)], [tensor(astray)]).sameness == "reduced"


def test_no_weight_goes_further_astray_than_training_changed_any():
    x = numbers() + 3
    original = [tensor(x + step * 1e-4 * numbers(seed=5), "weights.0.w.0", step) for step in (0, 12)]

    def off_by(distance):
        astray = original[1].array().copy()
        astray[:3] += distance
        return judged(original, [original[0], tensor(astray, "weights.0.w.0", 12)])

    assert off_by(2e-3).sameness == "close"
    verdict = off_by(0.5)
    assert verdict.sameness == "reduced" and "times as far as rounding goes" in verdict.reason


def test_a_last_batch_may_be_shorter():
    inputs = [tensor(numbers(size), "input.0", step) for step, size in ((0, 2000), (1, 1500))]
    noisy = [tensor(one.array() + EPS * numbers(one.shape[0], seed=3), one.what, one.step) for one in inputs]
    assert judged(inputs, noisy).sameness == "close"


def test_the_first_step_that_differs_is_named():
    a = [tensor([1.0]), tensor([1.0], step=3), tensor([1.0], step=4)]
    b = [tensor([1.0]), tensor([1.5], step=3), tensor([9.0], step=4)]
    reason = judged(a, b).reason
    assert "step 4, output" in reason and "1.5 instead of 1" in reason


def test_an_early_step_decides_where_later_ones_are_chaotic():
    """Differences grow tenfold with each step: bfloat16 is beyond the first step's limit, and far within the last's."""

    def run(error):
        return [tensor(np.clip(1 + error * 10.0**step, 0, 2), step=step) for step in range(9)]

    limits = Limits(run(np.zeros(50)), [run(EPS * np.random.default_rng(s).normal(size=50)) for s in range(4)])
    assert limits.judge(run(3 * EPS * np.random.default_rng(9).normal(size=50))).sameness == "close"
    verdict = limits.judge(run(2.0**-9 * np.random.default_rng(9).normal(size=50)))
    assert verdict.sameness == "reduced" and "step 1," in verdict.reason


def test_whole_numbers_are_equal_wherever_rounding_leaves_them():
    original, rounded = [tensor([3, 5], dtype="int64")], [tensor([3, 6], dtype="int64")]
    limits = Limits(original, [rounded, original])
    assert limits.judge([tensor([3, 7], dtype="int64")]).sameness == "close"
    assert limits.judge([tensor([4, 5], dtype="int64")]).sameness == "reduced"


@pytest.mark.parametrize(
    "changed", [[], [tensor([1.0]), tensor([1.0])], [tensor([1.0, 1.0])], [tensor([1.0], "loss.0")], [tensor([np.nan])]]
)
def test_other_tensors_cannot_be_compared(changed):
    verdict = judged([tensor([1.0])], changed)
    assert verdict.sameness is None and verdict.ratio == math.inf and verdict.reason


def test_infinities_that_stay_are_no_difference():
    x = np.append(numbers(), [np.inf, -np.inf, np.nan])
    assert judged([tensor(x)], [tensor(x * (1 + EPS))]).sameness == "close"


def test_a_coarser_type_is_named():
    x = numbers()
    reason = judged([tensor(x)], [tensor(x + 4e-3 * numbers(seed=2), dtype="bfloat16")]).reason
    assert "bfloat16 instead of float32" in reason


def test_a_program_that_differs_from_itself_is_judged_by_that():
    x, jitter = numbers(), 50 * EPS
    runs = [[tensor(x + jitter * numbers(seed=seed))] for seed in range(5)]
    assert Limits(runs[0], runs[1:]).judge([tensor(x + 20 * jitter * numbers(seed=8))]).sameness == "close"
    assert Limits(runs[0], runs[1:]).judge([tensor(x * 1.03)]).sameness == "reduced"


def test_of_a_program_that_differs_from_itself_altogether_nothing_can_be_said():
    runs = [[tensor(numbers(seed=seed))] for seed in range(5)]
    verdict = Limits(runs[0], runs[1:]).judge([tensor(numbers(seed=7))])
    assert verdict.sameness is None and verdict.says_nothing and "nothing can be said" in verdict.reason


def test_a_perturbed_run_that_takes_another_path_counts_up_to_there():
    original = [tensor(numbers(), step=0), tensor(numbers(), step=1)]
    other_path = [original[0], tensor(numbers(5), step=1)]
    changed = [original[0], tensor(numbers() + 10 * EPS * numbers(seed=1), step=1)]
    assert Limits(original, [other_path]).judge(changed).sameness == "close"


# ------------------------------------------------------------------ programs that train; all of them: make sameness-bench

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def programs():
    from sameness_corpus import corpus

    return {program.name: program for program in corpus()}


@pytest.fixture(scope="module")
def verdict_of(programs):
    """The verdict on a change of a program, its limits made once."""
    limits = {}

    def verdict(name, changed):
        program = programs[name]
        if name not in limits:
            limits[name] = Limits(program.run(), [program.run(seed=seed) for seed in range(4)])
        return limits[name].judge(program.run(**changed))

    return verdict


CLOSE = [
    ("MLP, Adam", "sums in 16 parts"),
    ("MLP, Adam", "2 threads"),
    ("MLP, Adam", "fused optimizer"),
    ("MLP, Adam", "Adam written out"),
    ("MLP, SGD, decay", "item by item"),
    ("CNN, SGD, clipped", "channels last"),
    ("CNN, Adam", "foreach optimizer"),
    ("GRU, AdamW, decay, dropout", "sums in 4 parts"),
    ("transformer, Adam, dropout", "fused attention"),
]
REDUCED = [
    ("MLP, Adam", "bfloat16 autocast"),
    ("MLP, Adam", "float16 autocast"),
    ("MLP, Adam", "TF32 products"),
    ("MLP, Adam", "eps 1e-6"),
    ("MLP, Adam", "eps 1e-5"),
    ("MLP, Adam", "no bias correction"),
    ("MLP, SGD, decay", "no weight decay of 0.0001"),
    ("MLP, AdamW, decay", "no weight decay of 0.0001"),
    ("CNN, SGD, clipped", "no clipping"),
    ("CNN, SGD, clipped", "momentum of batch norm 0.2"),
    ("CNN, Adam", "label smoothing"),
    ("GRU, AdamW, decay, dropout", "no weight decay of 0.01"),
    ("GRU, AdamW, decay, dropout", "no dropout"),
    ("transformer, Adam, dropout", "label smoothing"),
    ("transformer, Adam, dropout", "eps of layer norm 1e-6"),
]


@pytest.mark.parametrize(("program", "change"), CLOSE)
def test_rounding_of_a_program_is_close(programs, verdict_of, program, change):
    verdict = verdict_of(program, programs[program].close_changes()[change])
    assert verdict.sameness in ("exact", "close"), verdict


@pytest.mark.parametrize(("program", "change"), REDUCED)
def test_more_than_rounding_of_a_program_is_not(programs, verdict_of, program, change):
    verdict = verdict_of(program, programs[program].reduced_changes()[change])
    assert verdict.sameness == "reduced", verdict

"""Growth of memory: the rate, what kind of rise it is, and the line that causes it."""

from __future__ import annotations

import math
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unstall.diagnose.growth import assess, is_growing
from unstall.diagnose.growth_site import locate
from unstall.records.report import Culprit
from unstall.statistics import slope

MB = float(1 << 20)
seeds = st.integers(0, 2**32 - 1)


def series(y, steps_apart=1):
    return [(float(i * steps_apart), float(value)) for i, value in enumerate(y)]


# ---------------------------------------------------------------- slope


@given(
    rate=st.floats(-1e6, 1e6),
    start=st.floats(-1e9, 1e9),
    size=st.integers(2, 40),
)
def test_slope_of_a_line_is_its_rate(rate, start, size):
    found, low, high = slope(series([start + rate * i for i in range(size)]))
    assert found == pytest.approx(rate, abs=1e-3)
    assert low <= found <= high


@given(seed=seeds, scale=st.floats(0.1, 1e3), shift=st.floats(-1e6, 1e6))
def test_slope_scales_with_y_and_ignores_a_shift_and_the_order(seed, scale, shift):
    rng = np.random.default_rng(seed)
    points = series(rng.normal(size=20).cumsum())
    changed = [(x, scale * y + shift) for x, y in points]
    rng.shuffle(changed)
    assert slope(changed)[0] == pytest.approx(scale * slope(points)[0], abs=1e-6)


@given(seed=seeds)
def test_slope_withstands_wild_points(seed):
    rng = np.random.default_rng(seed)
    y = 5.0 * np.arange(40)
    y[rng.choice(40, size=6, replace=False)] += 1e6
    assert slope(series(y))[0] == pytest.approx(5.0, rel=0.5)


def test_interval_covers_the_true_rate_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        _, low, high = slope(series(2.0 * np.arange(20) + rng.normal(scale=5, size=20)))
        covered += low <= 2.0 <= high
    assert 0.91 <= covered / 300 <= 0.99


def test_two_points_have_a_slope_but_no_bounds():
    assert slope([(0, 0), (2, 6)]) == (3.0, -math.inf, math.inf)


@pytest.mark.parametrize("points", [[], [(1.0, 2.0)], [(1.0, 2.0), (1.0, 3.0)]])
def test_slope_needs_two_places(points):
    with pytest.raises(ValueError, match="two different x"):
        slope(points)


def test_a_long_series_is_thinned_not_refused():
    assert slope(series(3.0 * np.arange(20_000)))[0] == pytest.approx(3.0)


# ---------------------------------------------------------------- steady or not


@given(seed=seeds, rate=st.floats(0.2 * MB, 10 * MB), points=st.integers(48, 200))
@settings(deadline=None)
def test_a_noisy_leak_is_growing(seed, rate, points):
    rng = np.random.default_rng(seed)
    y = 500 * MB + rate * np.arange(points) + rng.normal(scale=rate / 2, size=points)
    assert is_growing(series(y))


@given(seed=seeds, points=st.integers(8, 300))
@settings(deadline=None)
def test_noise_is_not_growing(seed, points):
    rng = np.random.default_rng(seed)
    y = 500 * MB + rng.normal(scale=0.1 * MB, size=points)
    assert not is_growing(series(y))
    assert assess(series(y)).kind == "flat"


@given(seed=seeds, steps=st.floats(4.0, 11.0), rate=st.floats(2 * MB, 100 * MB))
@settings(deadline=None)
def test_a_rise_within_a_few_long_steps_is_not_known_to_go_on(seed, steps, rate):
    x = np.linspace(0, steps, 60)
    y = 500 * MB + rate * x + np.random.default_rng(seed).normal(scale=0.01 * MB, size=60)
    assert not is_growing(list(zip(x, y)))
    assert is_growing(list(zip(x + 100 * x, y)))


@given(filled=st.floats(0.02, 0.45), height=st.floats(2, 5000), points=st.integers(16, 200))
@settings(deadline=None)
def test_a_cache_that_fills_and_stays_is_a_plateau(filled, height, points):
    y = height * MB * np.minimum(1, np.arange(points) / (filled * points))
    assert assess(series(y)).kind == "plateau"


@given(settling=st.floats(0.02, 0.25), height=st.floats(50, 5000))
@settings(deadline=None)
def test_a_rise_that_dies_away_is_not_growing(settling, height):
    y = height * MB * (1 - np.exp(-np.arange(120) / (settling * 120)))
    assert not is_growing(series(y))


@given(period=st.integers(4, 20), height=st.floats(5, 500), seed=seeds)
@settings(deadline=None)
def test_rise_and_release_is_not_growing(period, height, seed):
    noise = np.random.default_rng(seed).normal(scale=height * MB / 200, size=120)
    y = 300 * MB + height * MB * (np.arange(120) % period) / period + noise
    assert not is_growing(series(y))


@given(seed=seeds, steps=st.integers(12, 60), inside=st.integers(2, 40), height=st.floats(20 * MB, 2000 * MB))
@settings(deadline=None)
def test_what_is_given_back_within_a_step_is_not_growing(seed, steps, inside, height):
    """A long last step, an evaluation, has most of the readings, and rises to its end."""
    rng = np.random.default_rng(seed)
    quick = series(500 * MB + rng.normal(scale=0.02 * height, size=steps))
    long = [(steps - 1 + (i + 1) / inside, 500 * MB + height * i / inside) for i in range(inside)]
    assert not is_growing([*quick, *long])


def test_a_leak_is_growing_however_much_each_step_takes_and_gives_back():
    points = [
        (step + part / 10, 500 * MB + 4 * MB * step + 80 * MB * part / 10) for step in range(40) for part in range(10)
    ]
    trend = assess(points)
    assert trend.kind == "steady"
    assert trend.bytes_per_step == pytest.approx(4 * MB, rel=0.1)
    assert not is_growing([(step, value - 3.7 * MB * step) for step, value in points])  # less than what steps vary by


def test_a_release_that_takes_several_points_counts_as_one():
    tooth = [0, 10, 20, 30, 40, 50, 60, 40, 20]
    trend = assess(series(np.array(tooth * 8 + tooth[:7]) * MB))
    assert trend.kind == "sawtooth"


def test_a_leak_under_a_sawtooth_is_growing_at_the_rate_of_its_floor():
    i = np.arange(160)
    trend = assess(series(2 * MB * i + 40 * MB * (i % 8) / 8))
    assert trend.kind == "steady"
    assert trend.bytes_per_step == pytest.approx(2 * MB, rel=0.15)


def test_memory_that_comes_in_blocks_is_growing():
    y = np.floor(np.arange(100) / 8) * 4 * MB
    assert is_growing(series(y))


def test_a_warm_up_before_a_leak_does_not_raise_its_rate():
    i = np.arange(100)
    trend = assess(series(50 * MB * np.minimum(i, 20) + MB * i))
    assert trend.kind == "steady"
    assert trend.bytes_per_step == pytest.approx(MB, rel=0.05)


def test_what_is_below_the_given_rate_is_no_growth():
    y = 2 * MB * np.arange(50)
    assert is_growing(series(y), min_bytes_per_step=MB)
    assert not is_growing(series(y), min_bytes_per_step=3 * MB)
    assert not is_growing(series(y), min_total_bytes=1000 * MB)


@pytest.mark.parametrize("points", [[], [(0.0, 1.0)], series(range(7)), [(5.0, 1.0)] * 20])
def test_too_short_a_series_says_so(points):
    assert assess(points).kind == "short"
    assert not is_growing(points)


# ---------------------------------------------------------------- the line


def find(tmp_path, code, path, function="<module>") -> Culprit | None:
    file = tmp_path / "train.py"
    file.write_text(textwrap.dedent(code), encoding="utf-8")
    return locate(path, str(file), function)


@pytest.mark.parametrize(
    "statement",
    [
        "x += [loss]",
        "x = x + [loss]",
        "x = [*x, loss]",
        "x = torch.cat([x, loss])",
        "x = np.append(x, loss)",
        "loss, x = rnn(loss, x)",
        "x: list = x + [loss]",
        "print(x := x + [loss])",
        "x.append(loss)",
        "x.append(\n            loss,\n        )",
        "x.extend(loss for _ in range(2))",
        "x.add(loss)",
        "x.update({i: loss})",
        "x.setdefault(i, loss)",
        "x.setdefault(i, []).append(loss)",
        "x.insert(0, loss)",
        "x.appendleft(loss)",
        "x[i] = loss",
        "x[i][1] = loss",
        "x[i] += loss",
        "x['loss'].append(loss)",
        "heapq.heappush(x, loss)",
        "bisect.insort(x, loss)",
        "x.put(loss)",
        "[x.append(each) for each in loss]",
        "_ = x.append(loss) if i else None",
    ],
)
def test_every_form_of_growth_is_found(tmp_path, statement):
    code = f"def train():\n    x = make()\n    for i in range(9):\n        loss = step(i)\n        {statement}\n    return x\n"
    found = find(tmp_path, code, "x", "train")
    assert found is not None
    assert (found.line, found.function) == (5, "train")
    assert found.code == statement.splitlines()[0]


@pytest.mark.parametrize("statement", ["x = step(i)", "x.clear()", "y.append(x)", "y[x] = 1", "x.pop()", "print(x)"])
def test_what_does_not_grow_it_is_not_named(tmp_path, statement):
    code = f"def train():\n    for i in range(9):\n        {statement}\n"
    assert find(tmp_path, code, "x", "train") is None


def test_a_line_run_in_each_step_comes_before_one_run_once(tmp_path):
    code = """
    losses = []
    losses.append(0)
    for i in range(9):
        losses += [i]
    """
    assert find(tmp_path, code, "losses").line == 5


def test_an_append_comes_before_an_assignment(tmp_path):
    code = """
    def train(h):
        for i in range(9):
            h = h.detach()
            h = h + step(i)
            h.append(i)
    """
    assert find(tmp_path, code, "h", "train").code == "h.append(i)"


def test_making_less_of_it_comes_last(tmp_path):
    code = """
    def train(h):
        for x in data:
            h = h[1:]
            out, h = rnn(x, h)
            h = h.detach()
    """
    assert find(tmp_path, code, "h", "train").code == "out, h = rnn(x, h)"


def test_a_local_of_another_function_is_another_variable(tmp_path):
    code = """
    def validate():
        losses = []
        for i in range(9):
            losses.append(i)

    def train():
        losses = []
        for i in range(9):
            losses.append(i * 2)
    """
    found = find(tmp_path, code, "losses", "train")
    assert (found.code, found.function) == ("losses.append(i * 2)", "train")


def test_a_global_is_found_in_the_functions_that_use_it(tmp_path):
    code = """
    total = 0
    seen = []

    def step(loss):
        global total
        total += loss
        seen.append(loss)
    """
    assert find(tmp_path, code, "total").code == "total += loss"
    assert find(tmp_path, code, "helpers.seen").function == "step"


def test_attributes_are_found_in_their_class_first(tmp_path):
    code = """
    class Meter:
        def add(self, x):
            self.history.append(x)

    class Trainer:
        seen = []

        def __init__(self):
            self.history = {}
            self.history.setdefault("loss", [])

        def log(self, x):
            self.history["loss"].append(x)
            Trainer.seen.append(x)
    """
    found = find(tmp_path, code, "self.history['loss']", "Trainer")
    assert (found.line, found.function) == (14, "Trainer.log")
    assert find(tmp_path, code, "trainer.meter.history", "Meter").function == "Meter.add"
    assert find(tmp_path, code, "Trainer.seen", "Trainer").code == "Trainer.seen.append(x)"


def test_attributes_grown_from_outside_their_class_are_found(tmp_path):
    code = """
    class State:
        def __init__(self):
            self.losses = []

    def train(state):
        for i in range(9):
            state.losses.append(i)
    """
    assert find(tmp_path, code, "state.losses", "State").function == "train"


def test_closures_and_default_arguments_are_found(tmp_path):
    code = """
    def make():
        memo = {}
        def step(x):
            memo[x] = x
        return step

    def collect(x, into=[]):
        into.append(x)
    """
    found = find(tmp_path, code, "step.memo", "make.<locals>.step")
    assert (found.code, found.function) == ("memo[x] = x", "make.<locals>.step")
    assert find(tmp_path, code, "collect.into", "collect").code == "into.append(x)"


@pytest.mark.parametrize("decorator", ["@lru_cache(maxsize=None)", "@functools.cache"])
def test_a_cached_function_is_found_by_its_decorator(tmp_path, decorator):
    code = f"class Tokens:\n    @staticmethod\n    {decorator}\n    def encode(text):\n        return text\n"
    found = find(tmp_path, code, "Tokens.encode.cache_info", "Tokens")
    assert (found.line, found.code, found.function) == (3, decorator, "Tokens.encode")


def test_a_function_cached_by_a_call_is_found(tmp_path):
    code = "import functools\nencode = functools.lru_cache(None)(slow)\n"
    assert find(tmp_path, code, "encode.cache_info").line == 2


def test_hooks_registered_in_each_step_are_found(tmp_path):
    code = """
    for x in data:
        model.register_forward_hook(lambda m, i, o: print(o))
    """
    assert find(tmp_path, code, "model._forward_hooks").line == 3


@given(st.text(max_size=30), st.text(max_size=10))
@settings(deadline=None)
def test_no_path_can_break_it(tmp_path_factory, path, function):
    file = tmp_path_factory.getbasetemp() / "any.py"
    file.write_text("x = []\nfor i in y:\n    x.append(i)\n", encoding="utf-8")
    found = locate(path, str(file), function)
    assert found is None or found.line == 3


@pytest.mark.parametrize("content", [None, b"def broken(:\n", b"\xff\xfe\x00", b"x = '\x00'\n", b""])
def test_an_unreadable_file_has_no_line(tmp_path, content):
    file = tmp_path / "a file.py"
    if content is not None:
        file.write_bytes(content)
    assert locate("x", str(file), "<module>") is None

"""The census of what a loop holds: what it finds, and what grows.

PYTEST_DONT_REWRITE: a rewritten assertion reads its function's locals, and such a function is left alone.
"""

from __future__ import annotations

import collections
import functools
import importlib
import json
import sys
import types

import numpy as np
import pytest

from unstall.benchmark.growing_objects import growing_objects
from unstall.child import retention

pytestmark = pytest.mark.usefixtures("alone")


def look(frame):
    """A busy machine must not cut the census short."""
    return retention.probe(frame, time_limit_s=10.0)


def probe():
    return look(sys._getframe(1))


def grown(loop, probes=4, steps=3):
    """Paths that grow, by what :func:`growing_objects` says of a generator of step boundaries."""
    seen = []
    for number, result in enumerate(loop(probes * steps)):
        if number % steps == 0:
            seen.append((number, result))
    return {item.path: item for item in growing_objects(seen)}


# ---------------------------------------------------------------- what is found


def test_containers_and_arrays_among_the_locals_are_found():
    losses = [1.0] * 7
    table = {"a": 1}
    seen = {1, 2, 3}
    array = np.zeros(1000)
    text = "x" * 1000
    result = probe()
    entries = result["entries"]
    found = {name: (entries[name]["kind"], entries[name]["len"]) for name in ("losses", "table", "seen")}
    assert found == {"losses": ("list", 7), "table": ("dict", 1), "seen": ("set", 3)}
    assert entries["array"]["bytes"] == array.nbytes
    assert entries["text"]["bytes"] == sys.getsizeof(text)
    assert entries["losses"]["file"] == __file__
    assert entries["losses"]["function"].endswith("test_containers_and_arrays_among_the_locals_are_found")
    assert result["loop"]["file"] == __file__
    assert len(losses) + len(table) + len(seen) == 11


def test_what_a_library_keeps_is_found_as_what_the_user_keeps(tmp_path, monkeypatch):
    packages = tmp_path / "site-packages"
    for name in ("planted", "bystander"):
        (packages / name).mkdir(parents=True)
        (packages / name / "__init__.py").write_text(f"{name}_records = [1, 2, 3]\n")
    (packages / "planted" / "loop.py").write_text(
        "class Monitor:\n    def __init__(self):\n        self.outputs = [1, 2]\n\n\n"
        "def fit(probe):\n    monitor = Monitor()\n    return probe()\n"
    )
    monkeypatch.syspath_prepend(packages)
    loop = importlib.import_module("planted.loop")
    importlib.import_module("bystander")
    try:
        result = loop.fit(probe)
    finally:
        for name in ("planted", "planted.loop", "bystander"):
            del sys.modules[name]
    entries = result["entries"]
    assert result["loop"] == {"file": loop.__file__, "function": "fit"}
    assert (entries["monitor.outputs"]["len"], entries["monitor.outputs"]["file"]) == (2, loop.__file__)
    assert entries["monitor.outputs"]["function"] == "Monitor"
    assert entries["planted.planted_records"]["len"] == 3
    assert not any("bystander_records" in path for path in entries)  # the loop does not run through it


def test_modules_that_are_imported_between_two_looks_are_found(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("first_of_two", "second_of_two"):
        (tmp_path / f"{name}.py").write_text(f"{name}_kept = [1, 2, 3]\n")
        importlib.import_module(name)
        try:
            assert f"{name}.{name}_kept" in probe()["entries"]
        finally:
            del sys.modules[name]


def test_what_the_loop_itself_holds_is_found_however_long_the_modules_take():
    first = [1, 2, 3]
    result = retention.probe(sys._getframe(), time_limit_s=0.0)
    assert not result["complete"]
    assert result["entries"]["first"]["len"] == len(first)


def test_the_result_is_json():
    strange = {("a", 1): [1], None: [2], "key": {b"x": [3]}, 5: [4]}
    assert json.loads(json.dumps(probe()))["entries"]["strange"]["len"] == len(strange)


def test_names_of_callers_and_of_their_modules_are_found():
    outer = [1, 2]

    def loop():
        outer_of_loop = [3]
        return look(sys._getframe()), outer_of_loop

    entries = loop()[0]["entries"]
    assert entries["outer"]["len"] == len(outer)
    assert entries["outer_of_loop"]["function"].endswith("<locals>.loop")
    assert entries["GLOBAL_CACHE"]["function"] == "<module>"


GLOBAL_CACHE: dict = {}


class Meter:
    __slots__ = ("unset", "values")

    def __init__(self):
        self.values = [1, 2, 3]


class Trainer:
    seen: list = []  # noqa: RUF012

    def __init__(self):
        self.history = {"loss": [], "acc": []}
        self.meter = Meter()
        self.by_class = collections.defaultdict(list)
        self.recent = collections.deque(maxlen=3)

    def fit(self, steps):
        for i in range(steps):
            self.history["loss"].append(float(i))
            self.by_class[i % 2].append("x" * 100)
            self.recent.append(i)
            Trainer.seen.append(i)
            yield look(sys._getframe())


def test_attributes_slots_and_class_attributes_are_found():
    trainer = Trainer()
    entries = probe()["entries"]
    assert entries["trainer.history['loss']"]["len"] == len(trainer.history["loss"])
    assert entries["trainer.meter.values"]["len"] == 3
    assert entries["trainer.meter.values"]["function"] == "Meter"
    assert entries["Trainer.seen"]["function"] == "Trainer"


def test_closures_defaults_partials_and_bound_methods_are_found():
    def make():
        memo = {1: 2}

        def step(x, into=[5, 6], *, more={7: 8}):  # noqa: B006
            return memo, into, more, x

        return step

    step = make()
    method = Trainer().fit
    partial = functools.partial(step, x=[1, 2, 3, 4])
    entries = probe()["entries"]
    assert entries["step.memo"]["len"] == 1
    assert entries["step.memo"]["function"].endswith("make.<locals>.step")
    assert entries["step.into"]["len"] == 2
    assert entries["step.more"]["len"] == 1
    assert entries["method.meter.values"]["len"] == 3
    assert entries["partial.keywords['x']"]["len"] == 4
    assert callable(method) and callable(partial)


def test_a_cached_function_is_measured_by_its_cache():
    @functools.cache
    def encode(i):
        return bytes(10_000 + i)

    @functools.lru_cache(maxsize=4)
    def bounded(i):
        return i

    for i in range(10):
        encode(i)
        bounded(i)
    entries = probe()["entries"]
    assert entries["encode.cache_info"]["len"] == 10
    assert 100_000 < entries["encode.cache_info"]["bytes"] < 110_000
    assert not entries["encode.cache_info"]["bounded"]
    assert entries["bounded.cache_info"]["bounded"]


# ---------------------------------------------------------------- what grows


def test_growing_attributes_are_told_from_bounded_ones():
    found = grown(Trainer().fit)
    assert found["self.history['loss']"].len_per_step == 1
    assert found["self.by_class[0]"].len_per_step == pytest.approx(0.5, abs=0.2)
    assert found["Trainer.seen"].len_per_step == 1
    assert not {"self.recent", "self.history", "self.history['acc']"} & set(found)


def test_a_defaultdict_with_ever_new_keys_grows():
    def loop(steps):
        groups = collections.defaultdict(list)
        for i in range(steps):
            groups[i].append(bytes(500))
            yield look(sys._getframe())

    item = grown(loop)["groups"]
    assert (item.kind, item.len_per_step) == ("dict", 1)
    assert item.bytes_per_step > 500


@pytest.mark.parametrize("length", [10, 300])
def test_lists_that_grow_inside_a_container_of_constant_length_are_found(length):
    def loop(steps):
        rows = [[] for _ in range(length)]
        for i in range(steps):
            for row in rows:
                row.append(float(i))
            yield look(sys._getframe())

    assert any(path.startswith("rows") for path in grown(loop))


def test_names_that_are_bound_anew_grow_too():
    def loop(steps):
        array = np.zeros(0)
        text, items = "x" * 300, ()
        for i in range(steps):
            array = np.append(array, np.ones(100))
            text += "step"
            items = (*items, i)
            yield look(sys._getframe())

    found = grown(loop)
    assert found["array"].bytes_per_step == pytest.approx(800)
    assert found["text"].len_per_step == pytest.approx(4)
    assert found["items"].kind == "tuple"


def test_a_cache_that_is_full_after_the_warm_up_does_not_grow():
    def loop(steps):
        cache = {}
        for i in range(steps):
            cache[i % 10] = bytes(100)
            yield look(sys._getframe())

    assert "cache" not in grown(loop, probes=10)


def test_sizes_that_go_up_and_down_do_not_grow():
    def loop(steps):
        for i in range(steps):
            batch = np.zeros(100 + 50 * (i % 7))
            words = ["w"] * (10 + i % 5)
            yield look(sys._getframe())
        del batch, words

    assert not {"batch", "words"} & set(grown(loop, probes=12, steps=1))


# ---------------------------------------------------------------- with torch


def train(steps, keep):
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    for i in range(steps):
        loss = model(torch.full((8, 4), float(i))).mean()
        loss.backward()
        keep(loss)
        yield look(sys._getframe(1))


def test_a_sum_of_losses_that_keeps_its_graph_grows():
    def loop(steps):
        kept = types.SimpleNamespace(total=0)

        def add(loss):
            kept.total = kept.total + loss

        for _ in train(steps, add):
            yield look(sys._getframe())

    found = grown(loop)
    assert found["kept.total"].graph_per_step >= 5
    assert "loss" not in found


@pytest.mark.parametrize("detached", [True, False])
def test_kept_losses_keep_a_graph_each_unless_detached(detached):
    def loop(steps):
        losses = []
        for _ in train(steps, lambda loss: losses.append(loss.detach() if detached else loss)):
            yield look(sys._getframe())

    item = grown(loop)["losses"]
    assert item.len_per_step == 1
    assert (item.graph_per_step == 0) == detached


def test_tensors_count_with_the_whole_storage_that_they_keep():
    torch = pytest.importorskip("torch")

    def loop(steps):
        kept, views = [], []
        for _ in range(steps):
            kept.append(torch.zeros(1000))
            views.append(np.zeros(1000)[:2])
            yield look(sys._getframe())

    found = grown(loop)
    assert found["kept"].bytes_per_step == pytest.approx(4000, rel=0.1)
    assert found["views"].bytes_per_step == pytest.approx(8000, rel=0.1)


def test_tensors_that_share_storage_count_once():
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(300, 300)
    states = [model.state_dict() for _ in range(100)]
    assert probe()["entries"]["states"]["bytes"] < 3 * 300 * 300 * 4
    assert len(states) == 100


def test_no_mode_or_subclass_is_asked_about_its_tensors():
    torch = pytest.importorskip("torch")
    calls = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            calls.append(func)
            return func(*args, **(kwargs or {}))

    class Mine(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    tensor = torch.ones(5).as_subclass(Mine)
    with Mode():
        calls.clear()
        result = probe()
    assert calls == []
    assert result["entries"]["tensor"]["bytes"] == 20
    assert type(tensor) is Mine

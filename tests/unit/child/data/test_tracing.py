import functools
import random

import numpy as np
import pytest
from PIL import Image

from unstall.child.data.clock import Cost, timed
from unstall.child.data.replaying import fresh, keep, replay
from unstall.child.data.tracing import Tracer, elements_of


class Compose:
    def __init__(self, *transforms):
        self.transforms = list(transforms)

    def __call__(self, value):
        for transform in self.transforms:
            value = transform(value)
        return value


class Add:
    def __init__(self, amount):
        self.amount = amount

    def __call__(self, value):
        return value + self.amount


def double(value):
    return value * 2


def consume(numbers):
    return sum(numbers)


class Numbers:
    """Everything a dataset may do with a sample."""

    def __init__(self):
        self.transform = Compose(Add(1), Add(10), double)
        self.calls = 0

    def __getitem__(self, index):
        value = self.load(index, scale=3)
        value = self.transform(value)
        self.effect(value)
        return value + consume(i for i in range(3))

    def load(self, index, *rest, scale=1, **options):
        return np.full((4,), index * scale, dtype=np.float64)

    def effect(self, value):
        value += 1000
        self.calls += 1


def traced(dataset, samples=5):
    """The stages of a dataset by name, as two looks find them."""
    tracer = Tracer(elements_of(dataset))
    for index in range(samples):
        tracer.watch(dataset.__getitem__, index)
    tracer.keep = set(tracer.stages)
    for index in range(samples):
        tracer.watch(dataset.__getitem__, index)
    return tracer.stages


def by_name(stages, name):
    return next(stage for stage in stages.values() if stage.name == name)


def test_finds_the_users_functions_and_the_members_of_compose():
    stages = traced(Numbers())
    names = [stage.name for stage in stages.values()]
    assert {"Numbers.load", "Compose.__call__", "double", "Numbers.effect", "consume"} <= set(names)
    assert names.count("Add") == 2, "two members of one class are two stages"
    assert by_name(stages, "double").depth > by_name(stages, "Compose.__call__").depth > 0
    assert all(stage.calls == 10 for stage in stages.values() if stage.name != "consume")


def test_a_stage_is_called_again_on_what_it_was_given():
    stages = traced(Numbers())
    added = [stage for stage in stages.values() if stage.name == "Add"]
    inputs = [[fresh(call.args[0])[0] for call in stage.calls_kept] for stage in added]
    assert inputs == [[0, 3, 6, 9, 12], [1, 4, 7, 10, 13]]
    cost = replay(added[0], seconds=0.001)
    assert cost is not None and cost.count >= 5 and cost.wall_s > 0


def test_replaying_changes_neither_the_inputs_nor_the_dataset():
    stages = traced(Numbers())
    effect = by_name(stages, "Numbers.effect")
    before = [fresh(call.args[1]).tolist() for call in effect.calls_kept]
    assert replay(effect, seconds=0.001) is not None
    assert [fresh(call.args[1]).tolist() for call in effect.calls_kept] == before


def test_keyword_arguments_and_defaults_are_as_they_were():
    load = by_name(traced(Numbers()), "Numbers.load")
    assert load.calls_kept[2].kwargs == {"scale": 3}
    call = load.calls_kept[2]
    assert call.function(*map(fresh, call.args), **call.kwargs).tolist() == [6.0] * 4


def test_an_iterator_is_not_used_up_twice():
    stage = by_name(traced(Numbers()), "consume")
    assert not stage.calls_kept and "iterator" in stage.why_not
    assert replay(stage, seconds=0.001) is None


def test_closures_and_super_can_be_called_again():
    class Base:
        def read(self, index):
            return index

    class Child(Base):
        def __init__(self, offset):
            self.shift = lambda value: value + offset

        def __getitem__(self, index):
            return self.read(index)

        def read(self, index):
            return self.shift(super().read(index))

    stages = traced(Child(5))
    for name in ("read", "<lambda>"):
        stage = next(stage for stage in stages.values() if stage.name.endswith(name) and stage.calls_kept)
        assert replay(stage, seconds=0.001) is not None, stage.why_not


def test_a_stage_that_fails_alone_says_so():
    class Stateful:
        def __init__(self):
            self.state = 0

        def __getitem__(self, index):
            self.state = 1
            value = self.read(index)
            self.state = 0
            return value

        def read(self, index):
            if not self.state:
                raise RuntimeError("not now")
            return index

    stages = traced(Stateful())
    stage = next(stage for stage in stages.values() if stage.name.endswith("read"))
    assert replay(stage, seconds=0.001) is None
    assert stage.why_not == "called on its own it raised RuntimeError"


def test_the_programs_profile_hook_is_given_back():
    import sys

    def hook(frame, event, arg):
        return None

    sys.setprofile(hook)
    try:
        Tracer({}).watch(Numbers().__getitem__, 1)
        assert sys.getprofile() is hook
        with pytest.raises(TypeError):
            Tracer({}).watch(Numbers().load, 1, 2)
    finally:
        sys.setprofile(None)


def test_waiting_for_a_file_is_told_apart(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(b"x" * 100_000)

    class Files:
        def __getitem__(self, index):
            return self.read(), self.think()

        def read(self):
            with open(path, "rb") as file:
                return file.read()

        def think(self):
            return sum(range(1000))

    stages = traced(Files())
    assert next(stage for stage in stages.values() if stage.name.endswith("Files.read")).reads_s > 0
    assert next(stage for stage in stages.values() if stage.name.endswith("Files.think")).reads_s == 0


def test_transforms_are_found_through_wrappers():
    class Subset:
        def __init__(self, dataset):
            self.dataset = dataset

    class Concat:
        def __init__(self, *datasets):
            self.datasets = datasets
            self.first = datasets[0]

    inner = Numbers()
    inner.transform.transforms.append(Compose(functools.partial(double)))
    found = elements_of(Subset(Concat(inner)))
    assert len(found) == 5
    assert {id(member) for member in inner.transform.transforms} <= set(found)


def test_an_unread_image_is_decoded_by_whom_it_is_given_to(tmp_path):
    pixels = np.arange(64 * 64 * 3, dtype=np.uint8).reshape(64, 64, 3)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as opened:
        kept = keep(opened)
        first, second = fresh(kept), fresh(kept)
        assert first is not second
        assert np.array_equal(np.asarray(first), pixels) and np.array_equal(np.asarray(second), pixels)
        opened.load()
        assert np.array_equal(np.asarray(fresh(keep(opened))), pixels)


def test_instruments_are_handed_on_as_they_are():
    import threading

    lock = threading.Lock()
    assert keep(lock) is lock and keep(double) is double and keep(7) == 7
    generator = random.Random(1)
    assert fresh(keep(generator)).random() == random.Random(1).random()


def test_time_is_on_a_core_or_waiting():
    import time

    cost = Cost()
    assert timed(cost, 2, lambda: time.sleep(0.1) or "slept") == "slept"
    timed(cost, 2, sum, range(300_000))
    assert cost.count == 4
    assert cost.blocked_s >= 0.05 and cost.cpu_s > 0  # on a busy machine a sleeper waits for a core, too
    assert cost.taken_s <= cost.wall_s * 1.001 + 1e-4
    assert cost.per_item()["blocked_s"] == pytest.approx(cost.blocked_s / 4)

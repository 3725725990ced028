"""The seam of environments: every class of the family is recorded, and still is what it was."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import ClassVar, Generic, TypeVar

import pytest

from unstall.child.seams import environments
from unstall.child.tap import Tap
from unstall.records.vocabulary import Tick

T = TypeVar("T")


def ticks(recorded, kind):
    return Tap(recorded.path).ticks[kind]


class OldEnv:
    """As gym's before it was generic."""

    def step(self, action):
        raise NotImplementedError

    def reset(self, *, seed=None):
        raise NotImplementedError


class GenericEnv(Generic[T]):
    """As gymnasium's."""

    def step(self, action):
        raise NotImplementedError

    def reset(self, *, seed=None):
        raise NotImplementedError


class PickyEnv:
    """One that has a say in its subclasses already."""

    known: ClassVar[list[tuple[str, int]]] = []

    def __init_subclass__(cls, *, weight=1, **kwargs):
        super().__init_subclass__(**kwargs)
        PickyEnv.known.append((cls.__name__, weight))

    def step(self, action):
        raise NotImplementedError

    def reset(self, *, seed=None):
        raise NotImplementedError


class Counting:
    """What an environment of any of these families does."""

    total = 0

    def step(self, action):
        """Add an action."""
        self.total += action
        return self.total

    def reset(self, *, seed=None):
        self.total = seed or 0
        return self.total


def family(base):
    """A fresh family of that kind: the seam stays in a class for good."""
    return type(base.__name__, (base,), {})


def counting(base, **options):
    return type(
        "Env", (base,), {"step": vars(Counting)["step"], "reset": vars(Counting)["reset"], "total": 0}, **options
    )


@pytest.fixture(params=[OldEnv, GenericEnv, PickyEnv], ids=["old", "generic", "picky"])
def base(request):
    return family(request.param)


@pytest.mark.parametrize("when", ["before", "after"])
def test_environments_are_recorded_whenever_they_are_defined(recorded, base, when):
    module = SimpleNamespace(Env=base)
    if when == "before":
        env_class = counting(base)
    environments.TARGETS["gymnasium.core"](module)
    if when == "after":
        env_class = counting(base)
    env = env_class()
    assert env.reset(seed=3) == 3
    assert env.step(2) == 5
    assert recorded.names() == ["~env.reset", "~env.step"]
    assert ticks(recorded, Tick.ENV) == 1
    assert isinstance(env, base)
    assert issubclass(env_class, base)
    assert env_class.step.__doc__ == "Add an action."


def test_subclasses_of_subclasses_are_recorded_once(recorded, base):
    module = SimpleNamespace(Env=base)
    parent = counting(base)
    environments.TARGETS["gymnasium.core"](module)
    child = type("Child", (parent,), {"step": lambda self, action: parent.step(self, action) + 100})
    grandchild = type("Grandchild", (child,), {})
    assert grandchild().step(1) == 101
    assert recorded.names() == ["~env.step"]


def test_only_the_outermost_of_wrapped_environments_counts(recorded, base):
    environments.TARGETS["gymnasium.core"](SimpleNamespace(Env=base))
    env_class = counting(base)
    inner = env_class()
    wrapper = type("Wrapper", (base,), {"step": lambda self, action: inner.step(2 * action)})
    assert wrapper().step(3) == 6
    assert recorded.names() == ["~env.step"]
    assert int(recorded.spans()["arg"][0]) != id(inner)


def test_a_family_keeps_its_own_say_in_subclasses(recorded):
    base = family(PickyEnv)
    environments.TARGETS["gym.core"](SimpleNamespace(Env=base))
    PickyEnv.known.clear()
    env_class = counting(base, weight=7)
    assert PickyEnv.known == [("Env", 7)]
    with pytest.raises(TypeError):
        counting(base, no_such_option=1)
    assert env_class().step(1) == 1
    assert recorded.names() == ["~env.step"]


PickledBase = family(GenericEnv)
environments.TARGETS["gymnasium.core"](SimpleNamespace(Env=PickledBase))


class PickledEnv(PickledBase):
    def __init__(self, total):
        self.total = total

    def step(self, action):
        self.total += action
        return self.total


def test_environments_still_pickle(recorded):
    env = pickle.loads(pickle.dumps(PickledEnv(4)))
    assert type(env) is PickledEnv
    assert env.step(1) == 5
    assert pickle.loads(pickle.dumps(env.step))(1) == 6
    assert recorded.names() == ["~env.step"] * 2


def test_a_vector_that_steps_in_its_base_class_counts_as_one(recorded):
    """As Stable-Baselines3's: what makes the step is ``step_wait``."""

    class VecEnv:
        def step(self, actions):
            self.step_async(actions)
            return self.step_wait()

    environments.TARGETS["stable_baselines3.common.vec_env.base_vec_env"](SimpleNamespace(VecEnv=VecEnv))

    class Dummy(VecEnv):
        def step_async(self, actions):
            self.actions = actions

        def step_wait(self):
            return sum(env.step(action) for env, action in zip(self.envs, self.actions))

    single = family(OldEnv)
    environments.TARGETS["gym.core"](SimpleNamespace(Env=single))
    vector = Dummy()
    vector.envs = [counting(single)() for _ in range(3)]
    assert vector.step([1, 2, 3]) == 6
    assert recorded.names() == ["~env.step"]
    assert ticks(recorded, Tick.ENV) == 1


def test_vectors_of_environments_are_a_family_too(recorded, base):
    environments.TARGETS["gymnasium.vector.vector_env"](SimpleNamespace(VectorEnv=base))
    counting(base)().step(1)
    assert recorded.names() == ["~env.step"]

"""The seams of frameworks' callbacks: which methods are recorded, under which names, and where they are written."""

from __future__ import annotations

import functools
import inspect
import pickle
from types import ModuleType

import pytest

from unstall.child import recording, seams
from unstall.child.families import event_seam, record_events
from unstall.records.vocabulary import SeamGroup, seam_of

# By framework: module and name of the base class, an event of its own, and one of its methods that is none.
FRAMEWORKS = {
    "lightning": ("lightning.pytorch.callbacks.callback", "Callback", "on_train_batch_end", "state_dict"),
    "transformers": ("transformers.trainer_callback", "TrainerCallback", "on_step_end", "state"),
    "keras": ("keras.src.callbacks.callback", "Callback", "on_epoch_end", "set_model"),
    "stable_baselines3": ("stable_baselines3.common.callbacks", "BaseCallback", "_on_step", "init_callback"),
    "fastai": ("fastai.callback.core", "Callback", "after_batch", "run"),
}


@pytest.fixture
def facts(monkeypatch):
    lines = []
    monkeypatch.setattr(recording, "emit_fact", lambda kind, **facts: lines.append((kind, facts)))
    return lines


def library(framework, **more):
    """A stand-in for the framework's module, with a fresh base class: a seam stays in a class for good."""
    name, base, event, other = FRAMEWORKS[framework]
    module = ModuleType(name)
    setattr(module, base, type(base, (), {event: lambda self: None, other: lambda self: None, **more}))
    return module


def install(module):
    for put in seams.targets()[module.__name__]:
        put(module)


def subclass(base, **methods):
    return type("Slow", (base,), methods)


@pytest.mark.parametrize("framework", sorted(set(FRAMEWORKS) - {"stable_baselines3"}))
def test_events_of_a_users_callback_are_recorded_and_other_methods_are_not(recorded, facts, framework):
    _, base, event, other = FRAMEWORKS[framework]
    module = library(framework)
    before = subclass(getattr(module, base), **{event: lambda self: "before"})
    install(module)
    after = subclass(getattr(module, base), **{event: lambda self: "after", other: lambda self: "other"})
    assert [getattr(before(), event)(), getattr(after(), event)(), getattr(after(), other)()] == [
        "before",
        "after",
        "other",
    ]
    assert recorded.names() == [f"~event.{framework}.Slow.{event}"] * 2
    assert {kind for kind, _ in facts} == {"callback"}
    assert all(fact["file"] == __file__ and fact["line"] > 0 for _, fact in facts)


def test_an_event_that_is_passed_to_the_base_is_recorded_once(recorded):
    seam = event_seam("~event.x.*")
    assert seam.group == SeamGroup.EVENTS

    class Base:
        def on_end(self):
            return 1

    class Logger(Base):
        def on_end(self):
            return super().on_end() + 1

    class Passing(Base):
        def on_end(self):
            return Logger().on_end()

    class Mine(Logger):
        def on_end(self):
            return super().on_end() + 1

    record_events(Base, seam, lambda name: name.startswith("on_"), containers=("Passing",))
    assert Mine().on_end() == 3
    assert Passing().on_end() == 2
    assert [name.rpartition("Mine")[1] or name.rpartition("Logger")[1] for name in recorded.names()] == [
        "Mine",
        "Logger",
    ]


def test_a_decorated_method_is_placed_where_it_is_written(recorded, facts):
    class Base:
        pass

    record_events(Base, event_seam("~event.x.*"), lambda name: name.startswith("on_"))

    def only_once(method):
        @functools.wraps(method)
        def wrapper(self):
            return method(self)

        return wrapper

    def on_end(self):
        return 5

    assert subclass(Base, on_end=only_once(on_end))().on_end() == 5
    assert facts[0][1]["line"] == on_end.__code__.co_firstlineno


def test_plain_functions_given_to_keras_are_recorded_by_their_own_names(recorded, facts):
    module = ModuleType("keras.src.callbacks.lambda_callback")

    class LambdaCallback:
        def __init__(self, on_epoch_end=None, **kwargs):
            self.on_epoch_end = on_epoch_end
            self.__dict__.update(kwargs)

    def plot(epoch, logs):
        return epoch

    module.LambdaCallback = LambdaCallback
    install(module)
    callback = LambdaCallback(plot, verbose=3, on_train_end=print)
    assert callback.on_epoch_end(4, {}) == 4
    assert (callback.verbose, callback.on_train_end) == (3, print)
    created, name = recorded.names()
    assert seam_of(created, seams.built_in()) is None
    assert name.startswith("~event.keras.") and name.endswith("plot.on_epoch_end")
    assert list(inspect.signature(LambdaCallback).parameters) == ["on_epoch_end", "kwargs"]
    assert facts[0][1]["line"] == plot.__code__.co_firstlineno


def test_a_class_that_may_not_be_changed_is_left_as_it_is(recorded):
    class Fixed(type):
        def __setattr__(cls, name, value):
            raise AttributeError(name)

    class Base:
        pass

    record_events(Base, event_seam("~event.x.*"), lambda name: name.startswith("on_"))

    class Mine(Base, metaclass=Fixed):
        def on_end(self):
            return 2

    assert Mine().on_end() == 2
    assert recorded.names() == []


class PickledBase:
    pass


record_events(PickledBase, event_seam("~event.x.*"), lambda name: name.startswith("on_"))


class PickledCallback(PickledBase):
    def on_end(self):
        return 1


def test_callbacks_still_pickle():
    assert pickle.loads(pickle.dumps(PickledCallback())).on_end() == 1
    assert pickle.loads(pickle.dumps(PickledCallback().on_end))() == 1


def test_the_hooks_of_a_lightning_module_are_events_but_those_that_make_the_batch_and_the_steps(recorded):
    module = ModuleType("lightning.pytorch.core.module")
    module.LightningModule = type("LightningModule", (), {})
    install(module)
    methods = ("on_train_start", "on_after_batch_transfer", "training_step", "configure_optimizers", "forward")
    model = subclass(module.LightningModule, **{name: lambda self: None for name in methods})()
    for name in methods:
        getattr(model, name)()
    assert recorded.names() == ["~event.lightning.Slow.on_train_start"]


def test_the_function_given_to_stable_baselines_is_recorded_and_containers_are_not(recorded):
    module = ModuleType("stable_baselines3.common.callbacks")
    base = type("BaseCallback", (), {"on_step": lambda self: self._on_step()})

    class ConvertCallback(base):
        def __init__(self, callback):
            self.callback = callback

        def _on_step(self):
            return self.callback({}, {})

    class CallbackList(base):
        def __init__(self, inner):
            self.inner = inner

        def _on_step(self):
            return self.inner.on_step()

    def stop(locals_, globals_):
        return False

    module.BaseCallback, module.ConvertCallback, module.CallbackList = base, ConvertCallback, CallbackList
    install(module)
    mine = subclass(base, _on_step=lambda self: True)()
    assert CallbackList(ConvertCallback(stop)).on_step() is False
    assert CallbackList(mine).on_step() is True
    given, own = (name for name in recorded.names() if name.count(".") > 1)
    assert given.endswith("stop._on_step") and own == "~event.stable_baselines3.Slow._on_step"

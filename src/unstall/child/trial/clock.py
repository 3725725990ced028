"""Count the steps of the main loop, one time stamp each, and end the program after enough of them.

``plan``: ``kind`` (optimizer, backward, request, batch, forward or env, as the diagnosis found it), ``warmup``,
``steps`` (counted, then stop), ``seconds`` (of counted steps; stop after them when ``steps`` is not given). Writes
``clock.json``.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
from time import monotonic  # before any program can put another in its place
from typing import TYPE_CHECKING, Any

from unstall.child import device, trial
from unstall.child.families import visit_family
from unstall.child.seams import environments
from unstall.child.trial.tensors import rows

if TYPE_CHECKING:
    from collections.abc import Callable

_HOOKS: dict[str, dict[str, Callable[[Any, TrialClock], None]]] = {}


class TrialClock:
    """The time stamps of one process; only the process of the main loop writes them down."""

    def __init__(self, plan: dict[str, Any], folder: str):
        self.path = os.path.join(folder, "clock.json")
        self.warmup = int(plan.get("warmup") or 0)
        self.steps = plan.get("steps")
        self.seconds = plan.get("seconds")
        self.times: list[float] = []
        self.units: list[int] = []
        self.subject: int | None = None
        self.pid = os.getpid()
        self.began = monotonic()
        self.on_step: list[Callable[[], None]] = []
        self.on_end: list[Callable[[], None]] = []
        self.written = False
        self.stopped = False

    def tick(self, units: int = 1) -> None:
        """One step has ended; ``units`` of work were in it."""
        if self.stopped or os.getpid() != self.pid or trial.is_unseen():
            return
        counted = len(self.times) - self.warmup
        if counted == 0:
            device.wait()  # what the steps of the warm-up have submitted is no part of what is counted
        now = monotonic()
        if not self.times:
            atexit.register(self.write)
        self.times.append(now)
        self.units.append(units)
        for function in self.on_step:
            function()
        if counted < 1:
            return
        enough = counted >= self.steps if self.steps else False
        if self.seconds and counted >= 3 and now - self.times[self.warmup] >= self.seconds:
            enough = True
        if enough:
            device.wait()
            self.times[-1] = monotonic()
            self.stopped = True
            self.write()
            raise SystemExit

    def is_subject(self, candidate: Any) -> bool:
        """Whether this optimizer, loader or model is the one that counts: the first that came."""
        if self.subject is None:
            self.subject = id(candidate)
        return self.subject == id(candidate)

    def write(self) -> None:
        """Write the time stamps down, once."""
        if self.written or os.getpid() != self.pid:
            return
        self.written = True
        for function in self.on_end:
            function()
        facts = {
            "began": self.began,
            "times": self.times,
            "units": self.units,
            "warmup": self.warmup,
            "stopped": self.stopped,
        }
        draft = self.path + ".part"
        with open(draft, "w") as file:
            json.dump(facts, file)
        os.replace(draft, self.path)


current: TrialClock | None = None


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """The hooks for the kind of step that is counted, by the modules of their libraries."""
    global current
    if trial.is_helper():
        return []
    clock = current = TrialClock(plan, folder)

    def install(hook: Callable[[Any, TrialClock], None]) -> Callable[[Any], None]:
        return lambda module: hook(module, clock)

    return [(module, install(hook)) for module, hook in _HOOKS[plan["kind"]].items()]


def _optimizer(module: Any, clock: TrialClock) -> None:
    def post(optimizer: Any, args: Any, kwargs: Any) -> None:
        if clock.is_subject(optimizer):
            clock.tick()

    module.register_optimizer_step_post_hook(post)


def _backward(module: Any, clock: TrialClock) -> None:
    trial.around_backward(module, after=clock.tick)


def _batch(module: Any, clock: TrialClock) -> None:
    base = module._BaseDataLoaderIter
    original = base.__next__

    def __next__(self: Any) -> Any:
        batch = original(self)
        if clock.is_subject(getattr(self, "_dataset", self)):
            clock.tick()
        return batch

    base.__next__ = __next__


def _request(module: Any, clock: TrialClock) -> None:
    mixin = module.GenerationMixin
    original = mixin.generate

    @functools.wraps(original)
    def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if clock.is_subject(self):  # a model that assists another is none
            clock.tick()
        return result

    mixin.generate = generate


def _forward(module: Any, clock: TrialClock) -> None:
    trial.after_model_calls(module, lambda model, args, result: clock.tick(rows(args)))


_env_depth = 0
"""Environments that are being stepped, each by the one around it: the outermost counts."""


def _env(module: Any, clock: TrialClock, base: str) -> None:

    def count_steps(cls: Any) -> None:
        step = cls.__dict__.get("step")
        if type(step).__name__ != "function":
            return

        def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
            global _env_depth
            _env_depth += 1
            try:
                result = step(self, *args, **kwargs)
            finally:
                _env_depth -= 1
            if not _env_depth:
                clock.tick()
            return result

        cls.step = counted

    family = getattr(module, base)
    count_steps(family)
    visit_family(family, count_steps)


_HOOKS.update(
    {
        "optimizer": {"torch.optim.optimizer": _optimizer},
        "backward": {"torch.autograd": _backward},
        "request": {"transformers.generation.utils": _request},
        "batch": {"torch.utils.data.dataloader": _batch},
        "forward": {"torch.nn.modules.module": _forward},
        "env": {module: functools.partial(_env, base=base) for module, base in environments.BASES.items()},
    }
)
KINDS = tuple(_HOOKS)
"""Kinds of step that can be counted without the recorder."""

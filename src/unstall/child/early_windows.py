"""Early looks at a loop: which operators a cycle runs, and which modules. Runs in the user's process.

In between two calls of one seam with the same subject; a report leaves these steps out. A program that calls its model
many times before it trains (rollouts, an evaluation of what it begins with) is looked at again when it trains, one
that only infers, when it goes on with batches of another size (an index was made, requests follow), and one that trains
again (a student after its teacher), when a new optimizer steps.
"""

from __future__ import annotations

import atexit
import itertools
import sys
import time
import weakref
from _thread import get_ident  # the program may put another in the place of threading's
from typing import TYPE_CHECKING, Any

from unstall.child import dropped_gradients, flops, frozen, gradients, reading, recording
from unstall.child.op_times import program_path
from unstall.child.seams import modules, optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MOST_OPTIMIZERS = 64
_MOST_TRAININGS = 3
_PATIENCE = 5000
"""Events that are heard on the whole while steps of new optimizers are waited for."""


class EarlyWindows:
    """Two looks, over cycles from one call of a seam with the same subject to the next: operators, then modules."""

    FLOPS_AT_OPTIMIZER = 2
    FLOPS_AT_FORWARD = 7  # without an optimizer so far: inference, reinforcement learning, long accumulation
    FLOPS_STEPS = 2  # the first shows what the second repeats
    FLOPS_FORWARDS = 4
    MODULE_CYCLES = 8
    ENOUGH_S = 1.5  # then one cycle of operators does, or two of modules
    OTHER_SIZE = 2.0  # or half: batches of another loop, and not the last one of this
    OTHER_CALLS = 2  # in a row
    OVERDUE = 3  # so many times the last cycle after its end, no other one is waited for

    def __init__(self, emit_fact: Callable[..., None], watcher: Any, options: dict[str, Any]):
        """``watcher``: what is called at each event, to be told to the recorder."""
        self.emit_fact = emit_fact
        self.watcher = watcher
        self.state = "waiting" if options.get("flops", True) else "off"
        self.key: tuple[str, int] | None = None
        self.counter: Any = None
        self.counted: dict[str, Any] = {}
        """The facts of the whole cycles so far."""
        self.without_gradients = 0
        """Calls of models so far while operators are counted, by rollouts or a validation."""
        self.anomaly = False
        """Whether autograd's anomaly detection was on in a call of a model meanwhile."""
        self.began = 0.0
        self.thread = 0
        """Whose loop is looked at: what others do is none of its cycles."""
        self.overdue = float("inf")
        """When the loop that was looked at is taken to have ended."""
        self.marks: list[float] = []
        self.versions: dict[int, int] = {}
        """Of the models' parameters, as the modules' look begins."""
        self.optimizer_seen = False
        self.size: int | None = None
        """Of the batches in a look at a loop that only infers."""
        self.other_calls = 0
        """In a row since then, with batches of another size."""
        self.is_second = False
        """Whether such a loop is looked at again."""
        self.look = 0
        """Which one this is: a number of its own for each loop."""
        self.trainings = 0
        """Looked at so far."""
        self.new_steps: dict[int, int] = {}
        """Steps of the optimizers that were made since a training was looked at, by their address."""
        self.patience = _PATIENCE
        self.roots: dict[int, weakref.ref[Any]] = {}
        """The models that were called, by their address: they live and die as without unstall."""
        self._optimizers: dict[int, weakref.ref[Any]] = {}
        self.dropped: dropped_gradients.GradientUse | None = None
        self.backward_s = 0.0
        """Of the operators that were timed."""

    @property
    def is_open(self) -> bool:
        """Whether the loop is being looked at."""
        return self.state in ("flops", "modules")

    def event(self, name: str, first: Any, second: Any, count: int) -> None:
        if name == optimizer.MADE.event:
            self._expect_training(first)
        if self.state in ("done", "off") or (self.is_open and get_ident() != self.thread):
            return
        self.optimizer_seen = self.optimizer_seen or name == optimizer.STEP.event
        if name == modules.FORWARD.event and len(self.roots) < 8:
            self.roots[id(first)] = weakref.ref(first)
        can_be_seen = name == optimizer.STEP.event and type(first).__weakrefoffset__
        if can_be_seen and len(self._optimizers) < _MOST_OPTIMIZERS:
            self._optimizers[id(first)] = weakref.ref(first)
        if self.state == "flops" and flops.innermost_mode() is self.counter and not flops.is_seen():
            self.counter.leave()
            self.counter.enter()
        if self.is_second and self.is_open and name == modules.FORWARD.event:
            self.emit_fact("batch", root=id(first), **modules.batch_facts(first, second))
        if self.state == "flops" and name == modules.FORWARD.event:
            self.without_gradients += not sys.modules["torch"].is_grad_enabled()
            self.anomaly = self.anomaly or sys.modules["torch"].is_anomaly_enabled()
        if self.dropped is not None:
            self._follow_gradients(name, first, second)
        if self.state == "waiting":
            again = self._is_another_loop(name, first, second)
            if again or self._may_open(name, first, count):
                self.key, self.is_second = (name, id(first)), again
                self.size = modules.batch_size(first, second) if name == modules.FORWARD.event else None
                self._open_flops()
        elif (name, id(first)) == self.key:
            if self.state == "flops":
                self._flops_cycle(self.FLOPS_STEPS if name == optimizer.STEP.event else self.FLOPS_FORWARDS)
            elif self.state == "modules":
                self._modules_cycle()
        elif time.monotonic() > self.overdue:
            self._close_flops() if self.state == "flops" else self._close_modules()

    def _may_open(self, name: str, first: Any, count: int) -> bool:
        """Whether the loop's cycles are known to begin with this call, the ``count``-th."""
        if self.trainings:
            return self._trains_again(name, first)
        if name == optimizer.STEP.event:
            return count >= self.FLOPS_AT_OPTIMIZER
        early = name == modules.FORWARD.event and count == self.FLOPS_AT_FORWARD
        return early and self.key is None and not self.optimizer_seen

    def _expect_training(self, made: Any) -> None:
        """An optimizer is made: after a training that was looked at, another one may begin."""
        if self.state == "done" and self.trainings < _MOST_TRAININGS and self.patience > 0:
            self.state = "waiting"
            recording.native.watch(self.watcher, True)
        if self.trainings and self.state == "waiting":
            self.new_steps[id(made)] = 0

    def _trains_again(self, name: str, first: Any) -> bool:
        """Whether an optimizer that was made since then has begun to step."""
        self.patience -= 1
        if name == optimizer.STEP.event and id(first) in self.new_steps:
            self.new_steps[id(first)] += 1
            return self.new_steps[id(first)] >= self.FLOPS_AT_OPTIMIZER
        if self.patience <= 0:
            self.state = "done"
            recording.native.watch(self.watcher, False)
        return False

    def _is_another_loop(self, name: str, first: Any, second: Any) -> bool:
        """Whether the model that was looked at infers in another loop now, by the size of its batches; once."""
        if self.key != (name, id(first)) or name != modules.FORWARD.event or not self.size or self.is_second:
            return False
        size = modules.batch_size(first, second) or self.size
        times = size / self.size
        is_other = not 1 / self.OTHER_SIZE < times < self.OTHER_SIZE and not sys.modules["torch"].is_grad_enabled()
        self.other_calls = self.other_calls + 1 if is_other else 0
        return self.other_calls >= self.OTHER_CALLS

    def _flops_cycle(self, most: int) -> None:
        """A cycle has ended, of so many at most."""
        self.counted = self._count()
        taken = time.monotonic() - self.began
        self._expect_another(taken / self.counter.cycles)
        if taken > self.ENOUGH_S or self.counter.cycles >= most:
            self._close_flops()
        else:
            self.counter.next_cycle()

    def _expect_another(self, cycle_s: float) -> None:
        """A cycle took so long: the next one should not take much longer."""
        self.overdue = time.monotonic() + max(self.ENOUGH_S, self.OVERDUE * cycle_s)

    def _modules_cycle(self) -> None:
        self.marks.append(time.monotonic())
        self._expect_another(self.marks[-1] - self.marks[-2])
        cycles = len(self.marks) - 1
        long = self.marks[-1] - self.marks[0] > self.ENOUGH_S
        if cycles == self.MODULE_CYCLES or (long and cycles >= 2):
            self._close_modules()

    def _follow_gradients(self, name: str, first: Any, second: Any) -> None:
        assert self.dropped is not None
        if name == modules.FORWARD.event:
            self.dropped.called(first, second, program_path(sys._getframe()))
        elif name == optimizer.STEP.event:
            times = self.counter.times if self.counter is not None else None
            lines = times.take_pass() if times is not None else {}
            self.dropped.stepping(first, lines)

    def _open_flops(self) -> None:
        recording.native.watch(self.watcher, True)
        self.thread = get_ident()
        self.began = time.monotonic()
        self.counted, self.without_gradients, self.anomaly, self.overdue = {}, 0, False, float("inf")
        self.look += 1
        if self.trainings:  # what another training stepped is none of this one's
            self._optimizers = {each: known for each, known in self._optimizers.items() if each in self.new_steps}
        if flops.compiled():
            self.emit_fact("flops", compiled=True, look=self.look)
        if flops.compiled() or flops.innermost_mode() is not None:
            # Inside a mode of the program's own ours would be on top when the program leaves its own.
            self._open_modules()
            return
        self.counter = flops.make_counter()
        self.counter.enter()
        self.dropped = dropped_gradients.of_this_torch()
        self.state = "flops"
        atexit.register(self._end)

    def _count(self) -> dict[str, Any]:
        assert self.key is not None
        counter, times = self.counter, self.counter.times
        self.backward_s = times.backward_s if times is not None else 0.0
        return {
            "per": self.key[0],
            "look": self.look,
            "subject": self.key[1],
            "flops": counter.flops,
            "ops": counter.ops,
            "written": counter.written,
            "known": counter.known,
            "unknown": counter.unknown,
            "cycles": counter.cycles,
            "without_gradients": self.without_gradients,
            "anomaly": self.anomaly,
            "seconds": (times.forward_s, times.backward_s) if times is not None else (0.0, 0.0),
            "lines": times.facts() if times is not None else [],
            "other_lines": times.other_facts() if times is not None else [],
            "recomputed": times.recomputed() if times is not None else None,
        }

    def _close_flops(self) -> None:
        counter = self.counter
        if not self._leave_counter():
            counter.next_cycle()
            return  # try at the next call
        self._tell_flops()
        self._open_modules()

    def _tell_flops(self) -> None:
        self.emit_fact("window", what="flops", began=self.began, ended=time.monotonic())
        self.emit_fact("flops", **self.counted)

    def _end(self) -> None:
        """The program ends: what it did after the last whole cycle is none of the loop's."""
        if self.counted:
            self._tell_flops()
        self.abandon()

    def _leave_counter(self) -> bool:
        """Leave the counter's mode, if that may be."""
        if self.counter is not None:
            if not flops.may_leave(self.counter):
                return False
            self.counter.leave()
            self.counter = None
            atexit.unregister(self._end)
        return True

    def abandon(self) -> None:
        """The watcher failed, or this is a fork, or the program ends: count no more."""
        if self.state == "modules":
            recording.native.modules(False)
        self.state = "off"
        self.counted = {}  # a fork must not tell it at its end, too
        self.roots.clear()
        self._optimizers.clear()
        self.dropped = None
        self._leave_counter()

    def _open_modules(self) -> None:
        self.versions = frozen.versions(self._models())
        self.marks = [time.monotonic()]
        self.state = "modules"
        recording.native.modules(True)

    def _models(self) -> list[Any]:
        """Those that were called and are alive."""
        return [root for reference in self.roots.values() if (root := reference()) is not None]

    def optimizers(self) -> list[Any]:
        """Those that stepped while the loop was looked at, and are alive."""
        return [each for reference in self._optimizers.values() if (each := reference()) is not None]

    def _close_modules(self) -> None:
        assert self.key is not None
        steps = self.key[0] == optimizer.STEP.event
        recording.native.modules(False)
        recording.native.watch(self.watcher, self.optimizer_seen and not steps)  # a step comes soon, to look at
        self.state = "done" if steps else "waiting"
        self.trainings += steps
        self.new_steps = {}
        self.emit_fact("window", what="modules", marks=self.marks, per=self.key[0], look=self.look)
        self.watcher.device_calls.tell(self.emit_fact)
        dropped = self.dropped.facts() if self.dropped is not None else None
        if dropped is not None:
            self.emit_fact("dropped", backward=self.backward_s, look=self.look, **dropped)
        self.dropped = None
        alive = self.optimizers()
        states = frozen.states(self._models(), alive, self.versions)
        for root in self._models():
            more = gradients.facts(root, alive) if steps else {}  # where all gradients are there
            table = _module_table(root, states)
            self.emit_fact("modules", per=self.key[0], root=id(root), modules=table, look=self.look, **more)
        if steps:
            self.roots.clear()


def _module_table(root: Any, states: Mapping[int, str]) -> list[dict[str, Any]]:
    """Address, name, type, and where ``forward`` is written, of the root and each module in it (at most 5,000).

    ``states``: see :mod:`unstall.child.frozen`.
    """
    table = []
    for name, module in itertools.islice(reading.modules(root), 5000):
        table.append(
            {
                "id": id(module),
                "name": name,
                "type": type(module).__qualname__,
                "repr": reading.described(module)[:80],
                "state": states.get(id(module), ""),
                **reading.written_at(module),
            }
        )
    return table

"""Looks at the first calls of each seam: who calls it, with what. Runs in the user's process.

After some tens of calls it is called no more, and costs nothing in the steps that are measured. It never raises
into the program, but for the SystemExit by which a run ends after ``--steps``.
"""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import time
import weakref
from types import ModuleType
from typing import TYPE_CHECKING, Any

from unstall.child import dropped_gradients, flops, gradients, handlers, reading, recording, seams
from unstall.child.op_times import program_path
from unstall.child.seams import modules, optimizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

STOP, PROBE, SAMPLE, CALL = 1, 2, 3, 4
"""Control words: end the run here; look at what the program keeps in memory; sample stacks from inside; call the
extension, which clears the word itself when it is done."""

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MAX_FRAMES = 200
"""Frames of a call's stack: a path that lost its outermost frames could be compared with no other."""
_MOST_LIBRARIES = 200
_MOST_OPTIMIZERS = 64
_NEAREST = 8
"""Frames by which places are told apart: a library calls the model of training and validation by the same helpers."""


class Watcher:
    """Called by the recorder as ``watcher(name, control, first, second)`` where a seam begins on the main thread."""

    def __init__(
        self, emit_fact: Callable[..., None], options: dict[str, Any], on_call: Callable[..., None] | None = None
    ):
        self.emit_fact = emit_fact
        self.options = options
        self.on_call = on_call
        self.notes = seams.notes()
        self.noted: set[Any] = set()
        self.calls: dict[tuple[str, int], int] = {}
        self.names: dict[int, str] = {}
        self.windows = EarlyWindows(emit_fact, self, options)
        self.introduced = False

    def __call__(self, number: int, control: int, first: Any, second: Any) -> None:
        name = self.names.get(number)
        if name is None:
            self.names = {value: key for key, value in recording.native.names().items()}
            name = self.names.get(number, "?")
        if control == STOP:
            raise SystemExit
        try:
            if control == CALL and self.on_call is not None:
                self.on_call(name)
            self._look(name, control, first, second)
        except Exception as error:
            if handlers.raised(error):
                raise
            recording.native.watch(None, False)
            self.windows.abandon()
            self.emit_fact("error", what="watcher", error=repr(error))

    def _look(self, name: str, control: int, first: Any, second: Any) -> None:
        frame = _user_frame(sys._getframe(2))
        if frame is not None:
            self._site(name, frame)
        if not self.introduced and "torch" in sys.modules:
            self.introduced = True
            self.emit_fact("torch", **_torch_facts())
        key = (name, id(first))
        count = self.calls[key] = self.calls.get(key, 0) + 1
        self._note(name, count, first, second)
        self.windows.event(name, first, second, count)
        if control == PROBE and frame is not None:
            from unstall.child import retention

            recording.native.control(0)
            self.emit_fact("probe", seam=name, found=retention.probe(frame))
        elif control == SAMPLE:
            from unstall.child.inprocess import InProcessSampler

            recording.native.control(0)
            InProcessSampler(self.emit_fact).start()

    def _note(self, name: str, count: int, first: Any, second: Any) -> None:
        note = self.notes.get(name)
        if note is not None:
            try:
                note(self, count, first, second)
            except Exception as error:
                if handlers.raised(error):
                    raise
                del self.notes[name]
                self.emit_fact("error", what=f"note of {name}", error=repr(error))

    def emit_fact_once(self, kind: str, /, **facts: Any) -> None:
        """Write a line of facts, for the first time of each kind only."""
        if kind not in self.noted:
            self.noted.add(kind)
            self.emit_fact(kind, **facts)

    def _site(self, name: str, frame: FrameType) -> None:
        """Write down who calls this seam, once for each place."""
        key = (name, _path(frame, _NEAREST))
        if key in self.noted:
            return
        self.noted.add(key)
        torch = sys.modules.get("torch")
        self.emit_fact(
            "site", name=name, stack=_path(frame, _MAX_FRAMES), grad=torch is None or torch.is_grad_enabled()
        )


class EarlyWindows:
    """Two early looks, over cycles from one call of a seam with the same subject to the next: operators, modules."""

    FLOPS_AT_OPTIMIZER = 2
    FLOPS_AT_FORWARD = 7  # without an optimizer so far: inference, reinforcement learning, long accumulation
    FLOPS_STEPS = 2  # the first shows what the second repeats
    FLOPS_FORWARDS = 4
    FLOPS_ENOUGH_S = 1.5  # then one cycle does
    MODULE_CYCLES = 8
    MODULES_ENOUGH_S = 1.5  # then two cycles do

    def __init__(self, emit_fact: Callable[..., None], watcher: Watcher, options: dict[str, Any]):
        self.emit_fact = emit_fact
        self.watcher = watcher
        self.state = "waiting" if options.get("flops", True) else "done"
        self.key: tuple[str, int] | None = None
        self.counter: Any = None
        self.began = 0.0
        self.marks: list[float] = []
        self.optimizer_seen = False
        self.roots: dict[int, weakref.ref[Any]] = {}
        """The models that were called, by their address: they live and die as without unstall."""
        self.optimizers: dict[int, weakref.ref[Any]] = {}
        self.dropped: dropped_gradients.GradientUse | None = None
        self.backward_s = 0.0
        """Of the operators that were timed."""

    def event(self, name: str, first: Any, second: Any, count: int) -> None:
        if self.state == "done":
            return
        self.optimizer_seen = self.optimizer_seen or name == optimizer.STEP.event
        if name == modules.FORWARD.event and len(self.roots) < 8:
            self.roots[id(first)] = weakref.ref(first)
        can_be_seen = name == optimizer.STEP.event and type(first).__weakrefoffset__
        if can_be_seen and len(self.optimizers) < _MOST_OPTIMIZERS:
            self.optimizers[id(first)] = weakref.ref(first)
        if self.state == "flops" and flops.innermost_mode() is self.counter and not flops.is_seen():
            self.counter.leave()
            self.counter.enter()
        if self.dropped is not None:
            self._follow_gradients(name, first, second)
        if self.state == "waiting":
            by_optimizer = name == optimizer.STEP.event and count == self.FLOPS_AT_OPTIMIZER
            by_forward = name == modules.FORWARD.event and count == self.FLOPS_AT_FORWARD and not self.optimizer_seen
            if by_optimizer or by_forward:
                self.key = (name, id(first))
                self._open_flops()
        elif (name, id(first)) == self.key:
            if self.state == "flops":
                long = time.monotonic() - self.began > self.FLOPS_ENOUGH_S
                most = self.FLOPS_STEPS if name == optimizer.STEP.event else self.FLOPS_FORWARDS
                if long or self.counter.cycles >= most:
                    self._close_flops()
                else:
                    self.counter.next_cycle()
            elif self.state == "modules":
                self.marks.append(time.monotonic())
                cycles = len(self.marks) - 1
                long = self.marks[-1] - self.marks[0] > self.MODULES_ENOUGH_S
                if cycles == self.MODULE_CYCLES or (long and cycles >= 2):
                    self._close_modules()

    def _follow_gradients(self, name: str, first: Any, second: Any) -> None:
        assert self.dropped is not None
        if name == modules.FORWARD.event:
            self.dropped.called(first, second)
        elif name == optimizer.STEP.event:
            times = self.counter.times if self.counter is not None else None
            lines = times.take_pass() if times is not None else {}
            self.dropped.stepping(first, program_path(sys._getframe()), lines)

    def _open_flops(self) -> None:
        recording.native.watch(self.watcher, True)
        self.began = time.monotonic()
        if flops.compiled():
            self.emit_fact("flops", compiled=True)
        if flops.compiled() or flops.innermost_mode() is not None:
            # Inside a mode of the program's own ours would be on top when the program leaves its own.
            self._open_modules()
            return
        self.counter = flops.make_counter()
        self.counter.enter()
        self.dropped = dropped_gradients.of_this_torch()
        self.state = "flops"
        atexit.register(self.abandon)

    def _close_flops(self) -> None:
        counter = self.counter
        if not self._leave_counter():
            counter.next_cycle()
            return  # try at the next call
        assert self.key is not None
        self.emit_fact("window", what="flops", began=self.began, ended=time.monotonic())
        self.emit_fact(
            "flops",
            per=self.key[0],
            flops=counter.flops,
            ops=counter.ops,
            written=counter.written,
            known=counter.known,
            unknown=counter.unknown,
            cycles=counter.cycles,
            lines=counter.times.facts() if counter.times is not None else [],
            recomputed=counter.times.recomputed() if counter.times is not None else None,
        )
        self.backward_s = counter.times.backward_s if counter.times is not None else 0.0
        self._open_modules()

    def _leave_counter(self) -> bool:
        """Leave the counter's mode, if that may be."""
        if self.counter is not None:
            if not flops.may_leave(self.counter):
                return False
            self.counter.leave()
            self.counter = None
            atexit.unregister(self.abandon)
        return True

    def abandon(self) -> None:
        """The program ends, or the watcher failed, or this is a fork: count no more."""
        if self.state == "modules":
            recording.native.modules(False)
        self.state = "done"
        self.roots.clear()
        self.optimizers.clear()
        self.dropped = None
        self._leave_counter()

    def _open_modules(self) -> None:
        self.marks = [time.monotonic()]
        self.state = "modules"
        recording.native.modules(True)

    def _close_modules(self) -> None:
        recording.native.modules(False)
        recording.native.watch(self.watcher, False)
        self.state = "done"
        assert self.key is not None
        self.emit_fact("window", what="modules", marks=self.marks, per=self.key[0])
        steps = self.key[0] == optimizer.STEP.event  # which is where all gradients are there
        dropped = self.dropped.facts() if self.dropped is not None else None
        if dropped is not None:
            self.emit_fact("dropped", backward=self.backward_s, **dropped)
        self.dropped = None
        alive = [each for reference in self.optimizers.values() if (each := reference()) is not None]
        for address, reference in self.roots.items():
            root = reference()
            if root is not None:
                more = gradients.facts(root, alive) if steps else {}
                self.emit_fact("modules", root=address, modules=_module_table(root), **more)
        self.roots.clear()
        self.optimizers.clear()


def _path(frame: FrameType | None, most: int) -> tuple[tuple[str, str, int, int], ...]:
    """File, function, line and the function's first line of a frame and of those that called it, innermost first."""
    path: list[tuple[str, str, int, int]] = []
    while frame is not None and len(path) < most:
        code = frame.f_code
        path.append((code.co_filename, code.co_name, reading.line_of(frame), code.co_firstlineno))
        frame = frame.f_back
    return tuple(path)


def _user_frame(frame: FrameType | None) -> FrameType | None:
    """The nearest frame that is not unstall's own."""
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return frame


def _versions() -> dict[str, str]:
    """Of the libraries that are imported and say theirs, read without asking a module for anything."""
    versions: dict[str, str] = {}
    for name, module in list(sys.modules.items()):
        version = module.__dict__.get("__version__") if type(module) is ModuleType and "." not in name else None
        if type(version) is str and name not in sys.stdlib_module_names and len(versions) < _MOST_LIBRARIES:
            versions[name] = version[:40]
    return versions


def _torch_facts() -> dict[str, Any]:
    torch = sys.modules["torch"]
    facts: dict[str, Any] = {
        "version": str(getattr(torch, "__version__", "")),
        "threads": torch.get_num_threads(),
        "libraries": _versions(),
    }
    if torch.cuda.is_initialized():
        facts["cuda"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return facts


def _module_table(root: Any) -> list[dict[str, Any]]:
    """Address, name, type, and where ``forward`` is written, of the root and each module in it (at most 5,000)."""
    table = []
    for name, module in itertools.islice(reading.modules(root), 5000):
        table.append(
            {
                "id": id(module),
                "name": name,
                "type": type(module).__qualname__,
                "repr": reading.described(module)[:80],
                **reading.written_at(module),
            }
        )
    return table

"""Looks at the first calls of each seam: who calls it, with what. Runs in the user's process.

After some tens of calls it is called no more, and costs nothing in the steps that are measured. It never raises
into the program, but for the SystemExit by which a run ends after ``--steps``.
"""

from __future__ import annotations

import os
import sys
import time
from types import ModuleType
from typing import TYPE_CHECKING, Any

from unstall.child import device_calls, handlers, ownpackage, reading, recording, seams
from unstall.child.device_calls import DeviceCalls
from unstall.child.early_windows import EarlyWindows

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
        self.device_calls = DeviceCalls()
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
            if device_calls.is_one(name):
                if self.windows.is_open:
                    self.device_calls.called(name, first, second, _path(_user_frame(sys._getframe(1)), _MAX_FRAMES))
                return
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
            self._site(name, frame, first)
        if not self.introduced and "torch" in sys.modules:
            self.introduced = True
            self.emit_fact("torch", **_torch_facts())
        key = (name, id(first))
        count = self.calls[key] = self.calls.get(key, 0) + 1
        self._note(name, count, first, second)
        self.windows.event(name, first, second, count)
        if control == PROBE and frame is not None:
            began = time.monotonic()
            with ownpackage.ours():
                from unstall.child import allocator, retention, subnormals
            recording.native.control(0)
            kept = [subnormals.share(each) for each in self.windows.optimizers()]
            self.emit_fact(
                "probe",
                seam=name,
                found=retention.probe(frame),
                subnormal=max(kept, default=0.0),
                free=allocator.free_bytes(),
            )
            self.emit_fact("window", what="probe", began=began, ended=time.monotonic())
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

    def _site(self, name: str, frame: FrameType, subject: Any) -> None:
        """Write down who calls this seam, once for each place, and of what object that was the first call."""
        key = (name, _path(frame, _NEAREST))
        if key in self.noted:
            return
        self.noted.add(key)
        torch = sys.modules.get("torch")
        grad = torch is None or torch.is_grad_enabled()
        self.emit_fact("site", name=name, stack=_path(frame, _MAX_FRAMES), grad=grad, subject=id(subject))


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

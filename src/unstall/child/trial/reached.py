"""Note which lines of a change are reached, instruction by instruction, and which of the program's functions are.

``plan``: path of a file → the lines in it that a change has brought. ``reached.jsonl``, one line for each that is
reached for the first time, by any process of the program: [path, function, its first line, line, offset of the
instruction in it], the offset -1 where a function begins. ``calls.json``, at the end of the first process: [path,
function, its first line, how often it was called there, and how often in each quarter of the optimizers' steps; nothing
there where these were few]. ``loop_lines.json``, then too: [path, line] of what is executed while optimizers make
``steps``, and while models are called in ``evaluations``.
"""

from __future__ import annotations

import _thread
import atexit
import dis
import json
import os
import sys
import threading
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from unstall.child import trial
from unstall.child.trial.spaced import Spaced
from unstall.child.user_files import is_user_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

_TOOL = 4  # of the ids of sys.monitoring, one that has no name
_LEAST_COUNTS, _MOST_COUNTS = 17, 256
LOST: list[Any] = ["", "", 0, 0, -2]
"""Is noted where the program ends the following; a debugger of its own does."""
_FROZEN = "<frozen "
"""How files of Python's own modules begin; others in angle brackets are of what is made at run time, by ``exec``."""


class Reached:
    """What has been reached in this process, and in the one that it is a fork of."""

    def __init__(self, files: dict[str, list[int]], folder: str):
        self.files = {path: set(lines) for path, lines in files.items()}
        self.path = os.path.join(folder, "reached.jsonl")
        self.calls_path = os.path.join(folder, "calls.json")
        self.loop_lines_path = os.path.join(folder, "loop_lines.json")
        self.pid = os.getpid()
        self.codes: dict[int, tuple[CodeType, dict[int, int]]] = {}
        """Codes by identity, as comparing would compare what they hold: offset → line still to be reached."""
        self.calls: dict[int, int] = {}
        """How often each of the program's functions began, by the same identity."""
        self.counts = Spaced(self.calls.copy, _MOST_COUNTS)
        """The calls so far, after steps."""
        self.loop_lines: dict[str, set[tuple[str, int]]] = {"steps": set(), "evaluations": set()}
        """(file, line) of the program that are being executed while an optimizer makes a step, or a model is called
        that does not learn.
        """

    def enter(self, code: CodeType) -> dict[int, int]:
        """What is still to be reached in a function that begins."""
        known = self.codes.get(id(code))
        if known is not None:
            if id(code) in self.calls:
                self.calls[id(code)] += 1
            return known[1]
        file = _file_of(code)
        is_made = file.startswith("<") and not file.startswith(_FROZEN)
        lines = self.files.get(file, set())
        wanted = {
            instruction.offset: line
            for instruction, line in _lines(code)
            if (is_made or line in lines) and instruction.opname not in ("RESUME", "CACHE")
        }
        self.codes[id(code)] = (code, wanted)
        if is_made or is_user_file(file):
            self.calls[id(code)] = 1
            self._write(code, file, code.co_firstlineno, -1)
        return wanted

    def is_counted(self, code: CodeType) -> bool:
        """Whether it is one of the program's functions."""
        return id(code) in self.calls

    def reach(self, code: CodeType, offset: int) -> bool:
        """An instruction is about to be executed. Returns whether others of its function are still to be reached."""
        wanted = self.codes[id(code)][1]
        line = wanted.pop(offset, None)
        if line is not None:
            self._write(code, _file_of(code), line, offset)
        return bool(wanted)

    def step(self) -> None:
        """An optimizer has made a step."""
        if os.getpid() != self.pid:
            return
        self.counts.note()
        self._note_lines(self.loop_lines["steps"])

    def evaluate(self, model: Any, args: tuple[Any, ...], result: Any) -> None:
        """A model was called."""
        if os.getpid() == self.pid and not getattr(model, "training", True):
            self._note_lines(self.loop_lines["evaluations"])

    @staticmethod
    def _note_lines(lines: set[tuple[str, int]]) -> None:
        """Those that are being executed."""
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            if is_user_file(frame.f_code.co_filename):
                lines.add((frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back

    def quarters(self, identity: int) -> list[int]:
        """How often a function was called in each quarter of the steps; nothing where these were few."""
        counts = self.counts.readings
        if len(counts) < _LEAST_COUNTS:
            return []
        last = len(counts) - 1
        ends = [counts[last * number // 4].get(identity, 0) for number in range(5)]
        return [after - before for before, after in pairwise(ends)]

    def end(self, *, is_followed: bool) -> None:
        """The process ends; where it is followed no more, what was noted is not all."""
        if os.getpid() != self.pid:
            return
        if not is_followed:
            self._note(LOST)
        rows = [
            [_file_of(code), code.co_name, code.co_firstlineno, calls, self.quarters(identity)]
            for identity, calls in self.calls.items()
            for code, _ in (self.codes[identity],)
        ]
        with open(self.calls_path, "w") as file:
            json.dump(rows, file)
        told = {of: [[os.path.abspath(path), line] for path, line in lines] for of, lines in self.loop_lines.items()}
        with open(self.loop_lines_path, "w") as file:
            json.dump(told, file)

    def _write(self, code: CodeType, file: str, line: int, offset: int) -> None:
        """At once: a worker may be killed. The program's own descriptors stay as they are."""
        self._note([file, code.co_name, code.co_firstlineno, line, offset])

    def _note(self, place: list[Any]) -> None:
        content = json.dumps(place) + "\n"
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, content.encode())
            finally:
                os.close(descriptor)
        except OSError:
            pass  # the parent sees that nothing was written


def _file_of(code: CodeType) -> str:
    return code.co_filename if code.co_filename.startswith("<") else os.path.abspath(code.co_filename)


def _lines(code: CodeType) -> Any:
    """(instruction, its line) of a function."""
    line = code.co_firstlineno
    starts = dict(dis.findlinestarts(code))
    for instruction in dis.get_instructions(code):
        line = starts.get(instruction.offset) or line
        yield instruction, line


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """Follow all that runs from now on, and count the steps."""
    reached = Reached(plan["files"], folder)
    if hasattr(sys, "monitoring"):
        _monitor(reached)
        atexit.register(lambda: reached.end(is_followed=True))  # a debugger of the program's has a tool of its own
    else:
        trace = _tracer(reached)
        threading.settrace(trace)
        _follow_bare_threads(trace)
        sys.settrace(trace)
        atexit.register(lambda: reached.end(is_followed=sys.gettrace() is trace))
    return [
        ("torch.optim.optimizer", lambda module: trial.after_optimizer_steps(module, reached.step)),
        ("torch.nn.modules.module", lambda module: trial.after_model_calls(module, reached.evaluate)),
    ]


def _tracer(reached: Reached) -> Callable[[FrameType, str, Any], Any]:
    """For ``sys.settrace``: instructions are asked for where some are still to be reached."""

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not reached.enter(code):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return local

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode" and not reached.reach(frame.f_code, frame.f_lasti):
            return None
        return local

    return trace


def _follow_bare_threads(trace: Callable[[FrameType, str, Any], Any]) -> None:
    """Threads that are started beneath ``threading``, which knows of none of them."""
    start = _thread.start_new_thread

    def start_new_thread(function: Any, args: Any, *kwargs: Any) -> int:
        def followed(*given: Any, **named: Any) -> None:
            sys.settrace(trace)
            function(*given, **named)

        return start(followed, args, *kwargs)

    _thread.start_new_thread = start_new_thread


def _monitor(reached: Reached) -> None:
    """With ``sys.monitoring``, from Python 3.12: each place is asked for once."""
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
    events = monitoring.events

    def begin(code: CodeType, offset: int) -> Any:
        if reached.enter(code):
            monitoring.set_local_events(_TOOL, code, events.INSTRUCTION)
        return None if reached.is_counted(code) else monitoring.DISABLE

    def instruction(code: CodeType, offset: int) -> Any:
        reached.reach(code, offset)
        return monitoring.DISABLE

    monitoring.use_tool_id(_TOOL, "unstall")
    monitoring.register_callback(_TOOL, events.PY_START, begin)
    monitoring.register_callback(_TOOL, events.INSTRUCTION, instruction)
    monitoring.set_events(_TOOL, events.PY_START)

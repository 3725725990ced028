"""CPU time of the operators of early cycles, by the program's line that calls them. Runs in the user's process.

What backward computes has no line: it is put down to the line of the operator whose gradient it is. Autograd numbers
the nodes of its graph as it makes them, before their operators run, and says which node it is at in backward.

What is computed again, though it was computed before, is told by line too: see :mod:`unstall.child.recomputation`.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from unstall.child import reading, recomputation, zeros
from unstall.child.recomputation import Call, RepeatedCalls, Work
from unstall.child.user_files import is_program_file
from unstall.child.zeros import Zeros

_NO_BACKWARD = -1
_MOST_LINES = 64
_NOTABLE = 0.02
"""Of the time of all operators: less of it at a line that nothing else is told of is not worth telling."""
_NEARLY_ALL = 0.97
"""Of what is computed: what recurs along with a call is what the call computes again, but for a rest that varies."""

Path = tuple[tuple[str, str, int], ...]
"""(file, function, line) of the program's frames, outermost first."""


@dataclass
class _Line:
    """Seconds of the operators that one line calls, reached by one path."""

    forward_s: float = 0.0
    calls: int = 0
    """Of operators in forward."""
    operators: dict[str, float] = field(default_factory=dict)
    """Of forward, by the name of the operator."""
    backward_s: float = 0.0
    nodes: dict[str, float] = field(default_factory=dict)
    """Of backward, by the name of the node."""
    pass_s: float = 0.0
    """Of backward, since it was last asked for."""
    zeros_s: float = 0.0
    """Of forward, that multiplies by zeros."""
    zeros_backward_s: float = 0.0
    work: Work = field(default_factory=Work)

    @property
    def is_telling(self) -> bool:
        """Whether its operators have a gradient, compute again, or multiply by zeros."""
        return bool(self.backward_s or self.work.again_s or self.zeros_s)

    @property
    def of_forward(self) -> dict[str, Any]:
        """Seconds and number of its operators in forward, and which takes the most of that."""
        most = max(self.operators, key=lambda name: self.operators[name], default="")
        return {"forward": self.forward_s, "calls": self.calls, "operator": most}


class OperatorTimes:
    """The operators of one thread, one after the other."""

    def __init__(
        self,
        torch_c: Any,
        recomputation: RepeatedCalls | None = None,
        zeros: Zeros | None = None,
        *,
        most_lines: int = 2_000,
    ):
        """``torch_c``: ``torch._C``. AttributeError where it does not tell about nodes."""
        self._most_lines = most_lines
        self._recomputation = recomputation
        self._zeros = zeros
        self._cycles = 1
        self._current_node = torch_c._current_autograd_node
        self._graph_task = torch_c._current_graph_task_id
        self._next_number = torch_c._autograd._get_sequence_nr
        self._lines: dict[Path, _Line] = {}
        self._by_node: dict[int, _Line] = {}
        self._last = (_Line(), "")
        """Of backward: line and name of the latest node."""

    def add(self, seconds: float, frame: FrameType | None, call: Call) -> None:
        """An operator has taken so much of the thread's time; ``frame``: of the code that called it, or backward."""
        in_backward = self._graph_task() != _NO_BACKWARD
        share = self._zeros.share(call, seconds, of_gradients=in_backward) if self._zeros is not None else 0.0
        zeros_s = seconds * share
        if not in_backward:
            line = self._line(program_path(frame))
            self._by_node.setdefault(self._next_number() - 1, line)
            line.forward_s += seconds
            line.calls += 1
            operator = str(call.func)
            line.operators[operator] = line.operators.get(operator, 0.0) + seconds
            line.zeros_s += zeros_s
            if self._recomputation is not None:
                self._recomputation.add(call, seconds, line.work)
            return
        node = self._current_node()
        if node is not None:  # else the engine adds the latest node's gradient to one that is there
            # Of its type: the program may keep a ``name`` of its own on a node of its own.
            self._last = self._by_node.get(node._sequence_nr()) or self._line(()), type(node).__name__
        line, name = self._last
        line.backward_s += seconds
        line.zeros_backward_s += zeros_s
        line.pass_s += seconds
        line.nodes[name] = line.nodes.get(name, 0.0) + seconds

    def next_cycle(self) -> None:
        """Another cycle begins, in which what the first has computed may be computed again."""
        if self._cycles == 1:
            for line in self._lines.values():
                line.work.forget()
        self._cycles += 1

    def take_pass(self) -> dict[Path, float]:
        """Seconds of backward by line, since this was last called."""
        taken = {path: line.pass_s for path, line in self._lines.items() if line.pass_s}
        for line in self._lines.values():
            line.pass_s = 0.0
        return taken

    @property
    def forward_s(self) -> float:
        """Seconds of all operators outside of backward."""
        return sum(line.forward_s for line in self._lines.values())

    @property
    def backward_s(self) -> float:
        """Seconds of all operators in backward."""
        return sum(line.backward_s for line in self._lines.values())

    def recomputed(self) -> dict[str, Any] | None:
        """What a cycle computes again, and the way to the line that does so most; None where nothing is.

        Seconds a cycle, ``of`` those of all operators; but ``computed`` and ``recurring`` are of all cycles: see
        :class:`recomputation.Work`.
        """
        done = [(path, line.work) for path, line in self._lines.items()]
        again_s = sum(work.again_s for _, work in done)
        if not again_s:
            return None
        counted = max(1, self._cycles - 1)
        backward_s = sum(
            line.backward_s * min(1.0, line.work.again_s / counted * self._cycles / line.forward_s)
            for line in self._lines.values()
            if line.forward_s
        )
        path = _recurring_call(done)
        function = path[-1][:2] if path else ()
        there_s = sum(work.again_s for path, work in done if any(frame[:2] == function for frame in path))
        return {
            "path": path,
            "there": there_s / again_s,
            "again": again_s / counted,
            "operators": sum(work.again for _, work in done) / counted,
            "backward": backward_s / self._cycles,
            "of": sum(line.forward_s + line.backward_s for line in self._lines.values()) / self._cycles,
            "computed": sum(work.computed_s for _, work in done),
            "recurring": sum(work.recurring_s for _, work in done),
        }

    def facts(self) -> list[dict[str, Any]]:
        """Those with gradients, repetition or zeros, most of backward first; those of no line have an empty path."""
        lines = [(path, line) for path, line in self._lines.items() if line.is_telling]
        lines.sort(key=lambda entry: -entry[1].backward_s - entry[1].work.again_s)
        return [
            {
                "path": path,
                **line.of_forward,
                "backward": line.backward_s,
                "node": max(line.nodes, key=lambda name: line.nodes[name], default=""),
                "again": line.work.again_s,
                "zeros": (line.zeros_s, line.zeros_backward_s),
            }
            for path, line in lines[:_MOST_LINES]
        ]

    def other_facts(self) -> list[dict[str, Any]]:
        """The other lines of the program that take a notable part of the operators' time, the most first."""
        least_s = _NOTABLE * (self.forward_s + self.backward_s)
        lines = [
            (path, line)
            for path, line in self._lines.items()
            if path and line.forward_s and not line.is_telling and line.forward_s >= least_s
        ]
        lines.sort(key=lambda entry: -entry[1].forward_s)
        return [{"path": path, **line.of_forward} for path, line in lines[:_MOST_LINES]]

    def _line(self, path: Path) -> _Line:
        if len(self._lines) >= self._most_lines:
            path = ()
        return self._lines.setdefault(path, _Line())


def of_this_torch() -> OperatorTimes | None:
    """None where torch is too old to tell about nodes."""
    try:
        return OperatorTimes(sys.modules["torch"]._C, recomputation.of_this_torch(), zeros.of_this_torch())
    except AttributeError:
        return None


def _recurring_call(done: Iterable[tuple[Path, Work]]) -> Path:
    """The outermost call that computes nearly nothing but what recurs, on the way to the most that is computed again.

    Where there is none, the line that calls the operators themselves.
    """
    prefix: Path = ()
    while True:
        beyond: dict[Path, list[tuple[Path, Work]]] = defaultdict(list)
        for path, work in done:
            if len(path) > len(prefix):
                beyond[path[: len(prefix) + 1]].append((path, work))
        if not beyond:
            return prefix
        prefix, done = max(beyond.items(), key=lambda item: sum(work.again_s for _, work in item[1]))
        recurring_s, computed_s = (
            sum(getattr(work, name) for _, work in done) for name in ("recurring_s", "computed_s")
        )
        if recurring_s >= _NEARLY_ALL * computed_s:
            return prefix


def program_path(frame: FrameType | None) -> Path:
    """The program's frames on a stack, given its innermost frame."""
    path: list[tuple[str, str, int]] = []
    while frame is not None:
        code = frame.f_code
        if is_program_file(code.co_filename):
            path.append((code.co_filename, code.co_name, reading.line_of(frame)))
        frame = frame.f_back
    return tuple(path[::-1])

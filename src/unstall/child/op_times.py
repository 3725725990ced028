"""How much CPU time the operators of a cycle take, by the program's line that calls them. Runs in the user's process.

What backward computes has no line: it is put down to the line of the operator whose gradient it is. Autograd numbers
the nodes of its graph as it makes them, before their operators run, and says which node it is at in backward.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from unstall.child import reading
from unstall.child.user_files import is_program_file

_NO_BACKWARD = -1
_MOST_LINES = 64

Path = tuple[tuple[str, str, int], ...]
"""(file, function, line) of the program's frames, outermost first."""


@dataclass
class _Line:
    """Seconds of the operators that one line calls, reached by one path."""

    forward_s: float = 0.0
    backward_s: float = 0.0
    nodes: dict[str, float] = field(default_factory=dict)
    """Of backward, by the name of the node."""


class OperatorTimes:
    """The operators of one thread, one after the other."""

    def __init__(self, torch_c: Any, *, most_lines: int = 2_000):
        """``torch_c``: ``torch._C``. AttributeError where it does not tell about nodes."""
        self._most_lines = most_lines
        self._current_node = torch_c._current_autograd_node
        self._graph_task = torch_c._current_graph_task_id
        self._next_number = torch_c._autograd._get_sequence_nr
        self._lines: dict[Path, _Line] = {}
        self._by_node: dict[int, _Line] = {}
        self._last = (_Line(), "")
        """Of backward: line and name of the latest node."""

    def add(self, seconds: float, frame: FrameType | None) -> None:
        """An operator has taken so much of the thread's time; ``frame``: of the code that called it, or backward."""
        if self._graph_task() == _NO_BACKWARD:
            line = self._line(_program_path(frame))
            self._by_node.setdefault(self._next_number() - 1, line)
            line.forward_s += seconds
            return
        node = self._current_node()
        if node is not None:  # else the engine adds the latest node's gradient to one that is there
            # Of its type: the program may keep a ``name`` of its own on a node of its own.
            self._last = self._by_node.get(node._sequence_nr()) or self._line(()), type(node).__name__
        line, name = self._last
        line.backward_s += seconds
        line.nodes[name] = line.nodes.get(name, 0.0) + seconds

    def facts(self) -> list[dict[str, Any]]:
        """Those that take time in backward, the most first; those of no line have an empty path."""
        lines = [(path, line) for path, line in self._lines.items() if line.backward_s]
        lines.sort(key=lambda entry: -entry[1].backward_s)
        return [
            {
                "path": path,
                "forward": line.forward_s,
                "backward": line.backward_s,
                "node": max(line.nodes, key=lambda name: line.nodes[name]),
            }
            for path, line in lines[:_MOST_LINES]
        ]

    def _line(self, path: Path) -> _Line:
        if len(self._lines) >= self._most_lines:
            path = ()
        return self._lines.setdefault(path, _Line())


def of_this_torch() -> OperatorTimes | None:
    """None where torch is too old to tell about nodes."""
    try:
        return OperatorTimes(sys.modules["torch"]._C)
    except AttributeError:
        return None


def _program_path(frame: FrameType | None) -> Path:
    path: list[tuple[str, str, int]] = []
    while frame is not None:
        code = frame.f_code
        if is_program_file(code.co_filename):
            path.append((code.co_filename, code.co_name, reading.line_of(frame)))
        frame = frame.f_back
    return tuple(path[::-1])

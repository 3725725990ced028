"""Who made a call: the operator, the range and the Python function around it, as far as the trace has them."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from unstall.records.report import Culprit
from unstall.trace.timeline import NONE, Flags, HostKind, Ids, Timeline

_FRAME = re.compile(r"^(?P<file>.*\.py)\((?P<line>\d+)\): (?P<function>.+)$", re.DOTALL)
_MODULE = "nn.Module: "
_LIBRARIES = re.compile(r"(^|[/\\])(site-packages|dist-packages|lib[/\\]python3[^/\\]*)[/\\]|^<")
_LIBRARY_NAMES = frozenset(
    ("torch", "torchvision", "torchaudio", "numpy", "scipy", "PIL", "cv2", "transformers", "accelerate", "datasets")
    + ("lightning", "pytorch_lightning", "deepspeed", "triton", "apex", "tqdm", "flashinfer", "flash_attn", "xformers")
)
_NOISE = re.compile(r"^(autograd::engine::evaluate_function: |nn\.Module: |## )")


def tidy(name: str) -> str:
    """A host event's name without what profilers and programs put around it."""
    return _NOISE.sub("", name).removesuffix(" ##")


class TraceFrame(NamedTuple):
    """A Python function in a trace."""

    function: str
    file: str
    line: int


def parse_frame(name: str) -> TraceFrame | None:
    """``train.py(12): step`` in its parts; None for modules, built-in functions and all else."""
    match = _FRAME.match(name)
    return TraceFrame(match["function"], match["file"], int(match["line"])) if match else None


def is_users(name: str) -> bool:
    """Whether a Python event is of the user's own code: not of the standard library, torch or an installed package."""
    frame = parse_frame(name)
    if frame is None or _LIBRARIES.search(frame.file):
        return False
    top = re.split(r"[/\\]", frame.file)[0].removesuffix(".py")
    return top not in _LIBRARY_NAMES and top not in sys.stdlib_module_names


@dataclass(frozen=True)
class Origin:
    """For each of some host rows, the row of what is around it, or -1."""

    operator: Ids
    """The outermost operator."""
    annotation: Ids
    """The innermost range that the program named."""
    region: Ids
    """The outermost such range."""
    module: Ids
    """The second-outermost module: a part of the model."""
    function: Ids
    """The innermost function of the user's own."""


class TraceBlame:
    """Looks up origins in one timeline."""

    def __init__(self, timeline: Timeline):
        self.timeline = timeline

    @cached_property
    def _users(self) -> Flags:
        return self.timeline.names_where(is_users)

    @cached_property
    def _modules(self) -> Flags:
        return self.timeline.names_where(lambda name: name.startswith(_MODULE))

    @cached_property
    def work(self) -> Origin:
        """Of every device row, where it was launched from; looked up once a launch call."""
        calls, back = np.unique(self.timeline.launch, return_inverse=True)
        origin = self.origin(calls.astype(np.int32))
        return Origin(*(getattr(origin, name)[back] for name in Origin.__dataclass_fields__))

    def origin(self, rows: Ids) -> Origin:
        """What is around each host row, itself included; rows of -1 have nothing around them."""
        t = self.timeline
        around = {name: np.full(len(rows), NONE, np.int32) for name in Origin.__dataclass_fields__}
        outermost_module = np.full(len(rows), NONE, np.int32)
        live = np.flatnonzero(rows >= 0)
        at = rows[live].astype(np.int32)
        while len(live):
            kind, name = t.host.kind[at], t.host.name[at]
            named = kind == HostKind.ANNOTATION
            operator = kind == HostKind.OPERATOR
            around["operator"][live[operator]] = at[operator]
            around["region"][live[named]] = at[named]
            first = named & (around["annotation"][live] == NONE)
            around["annotation"][live[first]] = at[first]
            python = kind == HostKind.PYTHON
            first = python & self._users[name] & (around["function"][live] == NONE)
            around["function"][live[first]] = at[first]
            module = python & self._modules[name]
            around["module"][live[module]] = outermost_module[live[module]]
            outermost_module[live[module]] = at[module]
            at = t.parent[at]
            live, at = live[at >= 0], at[at >= 0]
        return Origin(**around)

    def name(self, row: int) -> str:
        """The name of a host row, without what profilers put around it; empty for -1."""
        return tidy(self.timeline.names[self.timeline.host.name[row]]) if row >= 0 else ""

    def culprit(self, row: int, share: float, where: str = "main") -> Culprit | None:
        """The user's function around a host row, else the operator, else the range, else the call; None for -1."""
        if row < 0:
            return None
        origin = self.origin(np.array([row], np.int32))
        operator = self.name(int(origin.operator[0]))
        via = operator or ("" if parse_frame(self.name(row)) else self.name(row))
        share = min(max(share, 0.0), 1.0)
        frame = self._user_frame(int(origin.function[0]), int(origin.operator[0]))
        if frame is not None:
            return Culprit(function=frame.function, file=frame.file, line=frame.line, share=share, where=where, via=via)
        annotation = self.name(int(origin.annotation[0]))
        name = operator or annotation or self.name(row)
        via = f"{annotation}, {self.name(row)}" if operator and annotation else self.name(row)
        return Culprit(function=name, file="", line=0, share=share, where=where, via="" if via == name else via)

    def _user_frame(self, function: int, operator: int) -> TraceFrame | None:
        """From a Python event, or from the stack that old traces recorded with the operator."""
        t = self.timeline
        if function >= 0:
            return parse_frame(t.names[t.host.name[function]])
        stack = int(t.host.stack[operator]) if operator >= 0 else NONE
        frames = t.stacks[stack].split(";") if stack >= 0 else []
        return next((parse_frame(frame) for frame in frames if is_users(frame)), None)


def longest_function(timeline: Timeline, begin_ns: int, end_ns: int) -> int:
    """The host row of the user's innermost function that takes half of a time on the main thread; else the longest
    operator or call that does; -1 if nothing does.
    """
    host = timeline.host
    rows = np.flatnonzero((host.thread == timeline.main_thread) & (host.start_ns < end_ns) & (host.end_ns > begin_ns))
    overlap = np.minimum(host.end_ns[rows], end_ns) - np.maximum(host.start_ns[rows], begin_ns)
    rows = rows[2 * overlap >= end_ns - begin_ns]
    users = timeline.names_where(is_users)[host.name[rows]] & (host.kind[rows] == HostKind.PYTHON)
    for choice in (rows[users], rows[np.isin(host.kind[rows], (HostKind.OPERATOR, HostKind.ANNOTATION))], rows):
        if len(choice):
            return int(choice[-1])
    return NONE

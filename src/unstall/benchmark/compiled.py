"""What is traced and compiled while the loop runs, and what torch.compile says of each function that it compiled."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from unstall.benchmark.reader import ProcessRecording
from unstall.benchmark.steps import Loop, compilations, main_spans
from unstall.child.seams.dynamo import GRAPH, RESUMED
from unstall.child.seams.jax import COMPILE, TRACE
from unstall.child.user_files import is_program_file
from unstall.records.compiled import CompiledFrame, GraphBreak
from unstall.records.measurements import CompiledFunction

_GRAPH_NAME = "a graph of torch.compile"
_GUARD = re.compile(r"^\d+/\d+: (.*)$", re.DOTALL)
"""The reason to compile again: "0/3: tensor 'x' size mismatch", by the compilation whose guard failed."""
_LONGEST = 120


def compiled_in_steps(main: ProcessRecording, loop: Loop, chosen: npt.NDArray[np.bool_]) -> list[CompiledFunction]:
    """What was compiled in the measured steps, by name."""
    spans = main_spans(main)
    marks, took = compilations(main, spans)
    step = loop.step_of(marks)
    inside = (step >= 0) & chosen[step]
    totals: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    for number, seconds in zip(marks["name"][inside], took[inside]):
        name = main.names[int(number)]
        total = totals[COMPILE.member(name) if COMPILE.covers(name) else TRACE.member(name)]
        total[0] += COMPILE.covers(name)
        total[1] += float(seconds)
    graphs = spans[np.isin(spans["name"], main.of(GRAPH))]
    step = loop.step_of(graphs)
    graphs = graphs[(step >= 0) & chosen[step]]
    totals[_GRAPH_NAME] = [len(graphs), float(graphs["dur"].sum() / 1e9)]
    steps = int(chosen.sum())
    return [CompiledFunction(name, int(count), seconds / steps) for name, (count, seconds) in totals.items() if count]


@dataclass
class _Function:
    """One of the program's, with all that torch made of it: itself, and what comes after each break."""

    compilations: int = 0
    graphs: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    breaks: dict[int, str] = field(default_factory=dict)
    broken_by: str = ""
    """What broke the graph that was compiled last."""
    given_up: str = ""


def compiled_frames(facts: Sequence[Mapping[str, Any]]) -> list[CompiledFrame]:
    """The program's functions that torch.compile met, in the order in which it met them.

    Args:
        facts: lines of :mod:`unstall.child.seams.dynamo`, one a compilation.
    """
    functions: dict[tuple[str, str, int], _Function] = {}
    by_frame: dict[str, _Function] = {}
    for fact in facts:
        frame, reason, failure = str(fact["frame"]), _guard(str(fact["reason"])), _first_line(str(fact["failure"]))
        if fact["function"]:
            name, resumed_at = _named(str(fact["function"]))
            file, line = str(fact["file"]), int(fact["line"])
            if resumed_at is not None:
                above = [known[2] for known in functions if known[:2] == (file, name) and known[2] <= line]
                line = max(above, default=line)
            function = functions.setdefault((file, name, line), _Function())
            if frame not in by_frame:
                function.graphs += 1
                if resumed_at is not None:
                    function.breaks.setdefault(resumed_at, function.broken_by)
            by_frame[frame] = function
            function.compilations += 1
            if reason:
                function.reasons[reason] += 1
            if fact["breaks"]:
                function.broken_by = "; ".join(_first_line(str(text)) for text in fact["breaks"])
        if failure and frame in by_frame:
            by_frame[frame].given_up = reason or failure
    return [
        CompiledFrame(
            function=name,
            file=file,
            line=line,
            graphs=function.graphs,
            compilations=function.compilations,
            reasons=[reason for reason, _ in function.reasons.most_common()],
            breaks=[GraphBreak(line=at, reason=reason) for at, reason in function.breaks.items()],
            given_up=function.given_up,
        )
        for (file, name, line), function in functions.items()
        if is_program_file(file)
    ]


def _named(function: str) -> tuple[str, int | None]:
    """The program's function, and the line after which torch resumes it, None where that is its beginning."""
    resumed = RESUMED.match(function)
    return (resumed["function"], int(resumed["line"])) if resumed else (function, None)


def _guard(reason: str) -> str:
    """What a guard says, in a line, without the number of its compilation."""
    match = _GUARD.match(reason)
    return _first_line(match[1] if match else reason)


def _first_line(text: str) -> str:
    """Of a reason, without the code and the place that torch writes behind a guard."""
    first = text.partition("\n")[0].partition("  # ")[0].strip()
    return first if len(first) <= _LONGEST else f"{first[:_LONGEST]}…"

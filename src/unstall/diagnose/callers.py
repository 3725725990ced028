"""Who calls a function that is blamed: what is called too often is mended there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from unstall.child import seams
from unstall.child.seams import loader
from unstall.child.user_files import is_program_file
from unstall.diagnose import source
from unstall.diagnose.placing import Placed, count, is_call_of
from unstall.diagnose.thresholds import HOLDS
from unstall.records.measurements import SeamSite
from unstall.records.observations import Frame
from unstall.records.report import Caller
from unstall.records.vocabulary import BACKWARD, DATA_WAIT, FORWARD, OPTIMIZER, PhaseName, seam_of

FunctionKey = tuple[str, str]
"""(file, qualified name)."""

MOST_CALLERS = 3
"""Named of a culprit: who is further up calls other things as well."""
_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})
_STEP = frozenset({DATA_WAIT.name, FORWARD.name, BACKWARD.name, OPTIMIZER.name})


@dataclass
class _Calls:
    """What is seen of one caller."""

    samples: int = 0
    distance: int = 0
    """Sum over the samples of the calls that lie between it and the blamed function."""
    lines: Counter[int] = field(default_factory=Counter)


def loop_functions(samples: Sequence[Placed], sites: Iterable[SeamSite] = ()) -> frozenset[FunctionKey]:
    """The functions that run a training loop: they lead to several of its parts, or ask a loader for a batch.

    Args:
        samples: of the loop's thread.
        sites: where the program calls seams; of a part that takes next to no time no sample may be seen.
    """
    phases: dict[FunctionKey, set[str]] = defaultdict(set)
    for placed in samples:
        if placed.phase in _STEP:
            for function in functions_of(placed):
                phases[function].add(placed.phase)
    asking = {function for placed in samples for function in _asking(placed)}
    for phase, file, name, line in lines_to_parts(sites):
        phases[(file, source.function_at(file, line, name).qualname)].add(phase)
    return frozenset(function for function, led_to in phases.items() if len(led_to) > 1) | asking


def lines_to_parts(sites: Iterable[SeamSite]) -> Iterator[tuple[PhaseName, str, str, int]]:
    """The parts of a step, each with the file, function and line of the program's calls that lead to it."""
    for site in sites:
        seam = seam_of(site.seam, seams.built_in())
        if seam is not None and seam.phase in _STEP:
            for file, name, line in ((site.file, site.function, site.line), *site.callers):
                yield seam.phase, file, name, line


def _asking(placed: Placed) -> list[FunctionKey]:
    """The program's functions from which torch's loader is asked for a batch; none where it is not."""
    frames = placed.sample.frames
    called = next((at for at, frame in enumerate(frames) if is_call_of(loader.NEXT, frame)), 0)
    return functions_of(placed)[: sum(is_program_file(frame.file) for frame in frames[:called])]


def functions_of(placed: Placed) -> list[FunctionKey]:
    """The program's functions on a stack, outermost first."""
    return [(frame.file, function.qualname) for frame, function in placed.program]


def _through(blamed: FunctionKey, samples: Iterable[Placed]) -> Iterator[tuple[Placed, list[FunctionKey], int]]:
    """The samples that a function is in, each with all functions on its stack, and where among them it is first."""
    for placed in samples:
        functions = functions_of(placed)
        if blamed in functions:
            yield placed, functions, functions.index(blamed)


def looping_caller(blamed: FunctionKey, samples: Sequence[Placed], loops: frozenset[FunctionKey]) -> Frame | None:
    """The line of the program that calls the blamed function in a loop, where most of its time is in such calls.

    Only a call that nothing lies between: layers that a model calls one after the other are each a matter of its own.

    Args:
        blamed: the function.
        samples: in which it is blamed.
        loops: functions that run the training loop, or another over batches; theirs is the loop of the training.
    """
    through, lines = 0, Counter[Frame]()
    for placed, functions, at in _through(blamed, samples):
        through += placed.count
        frame, above = placed.program[at][0], placed.program[at - 1][0] if at else None
        frames = placed.sample.frames
        if above is None or functions[at - 1] in loops or frames[frames.index(frame) - 1] != above:
            continue
        if source.in_loop(above.file, above.line):
            lines[msgspec.structs.replace(above, function=functions[at - 1][1])] += placed.count
    line, calls = next(iter(lines.most_common(1)), (None, 0))
    return line if calls >= HOLDS * through else None


def who_makes(constructor: FunctionKey, samples: Sequence[Placed], loops: frozenset[FunctionKey]) -> FunctionKey | None:
    """Who makes the objects whose constructor is blamed, outside of their class; None where it is no constructor.

    In a loop it is called again and again: what is to be mended is that it is, or how often. Where the loop's own
    functions make them that is known, and it is the constructor that is to be looked at.

    Args:
        constructor: the function that is blamed.
        samples: in which it is.
        loops: functions that run the loop.
    """
    file, qualname = constructor
    owner, _, name = qualname.rpartition(".")
    if name not in _CONSTRUCTORS or not owner:
        return None
    through, makers = 0, Counter[FunctionKey]()
    for placed, functions, at in _through(constructor, samples):
        through += placed.count
        for above in reversed(functions[:at]):
            is_own = above[0] == file and above[1].startswith(f"{owner}.")
            if not is_own and above[1].rpartition(".")[2] not in _CONSTRUCTORS:
                makers[above] += placed.count
                break
    maker, made = next(iter(makers.most_common(1)), (constructor, 0))
    return maker if made >= HOLDS * through and maker not in loops and not maker[1].startswith("<") else None


def callers_of(
    blamed: FunctionKey, samples: Sequence[Placed], loops: frozenset[FunctionKey], total: int
) -> list[Caller]:
    """The functions that lead to most of the blamed one's time, the nearest first.

    Args:
        blamed: the function.
        samples: in which it is blamed.
        loops: functions that run the loop; they are left out, as is the code of modules.
        total: samples of the whole process, for the share that a caller has of its time.
    """
    through = 0
    calls: dict[FunctionKey, _Calls] = defaultdict(_Calls)
    for placed, functions, at in _through(blamed, samples):
        through += placed.count
        for depth, function in enumerate(functions[:at]):
            if function not in functions[depth + 1 : at]:  # of one that calls itself, the nearest
                seen = calls[function]
                seen.samples += placed.count
                seen.distance += (at - depth) * placed.count
                seen.lines[placed.program[depth][0].line] += placed.count
    least = HOLDS * through
    leading = [
        function
        for function, seen in calls.items()
        if seen.samples >= least and function not in loops and not function[1].startswith("<")
    ]
    leading.sort(key=lambda function: calls[function].distance / calls[function].samples)
    return [
        Caller(
            function=function[1],
            file=function[0],
            line=calls[function].lines.most_common(1)[0][0],
            share=min(1.0, count(placed for placed in samples if function in functions_of(placed)) / max(total, 1)),
        )
        for function in leading[:MOST_CALLERS]
    ]

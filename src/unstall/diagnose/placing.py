"""Where in the step a stack sample is: its phase, or the place of host code between the calls of the seams.

The phase of a sample is in its own stack, so it is right even where phase timers are not. A sample of no seam is
placed by what it calls, and by where its line stands to the lines that call the model and the optimizer.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from unstall.child import seams
from unstall.child.seams import autograd, environments, jax, loader, modules, optimizer
from unstall.child.user_files import is_program_file
from unstall.diagnose import dataflow, source, vocabulary
from unstall.records.measurements import Measurement, SeamSite
from unstall.records.observations import Frame, StackSample
from unstall.records.vocabulary import (
    BACKWARD,
    CALLBACK,
    DATA_WAIT,
    ENV,
    FORWARD,
    IDLE,
    OTHER,
    VALIDATION,
    PhaseName,
    Plugins,
    Seam,
    Tick,
    seam_of,
)

BEFORE_MODEL: PhaseName = "before"
BEFORE_BACKWARD: PhaseName = "between"
AFTER_MODEL: PhaseName = "after"
AFTER_TRAINING: PhaseName = "late"
HOST_PLACES = (BEFORE_MODEL, BEFORE_BACKWARD, AFTER_MODEL, AFTER_TRAINING, OTHER.name)
"""Places of host code that no seam times. The last is for code whose relation to the model's call is not known."""

ProgramFrames = Sequence[tuple[Frame, source.SourceFunction]]
"""The program's frames of a stack, outermost first, with the functions they are in."""

_HANDED_ON = ("__torch_function__", "__torch_dispatch__", "__array_function__", "__array_ufunc__")
"""Methods of a tensor's or array's class that operators pass through."""
_CallPath = Sequence[tuple[str, str, int]]
"""(file, function, line) of the program's frames that lead to a call of a seam, outermost first."""

_OPTIMIZER = re.compile(r"[/\\]torch[/\\]optim[/\\]")
_TORCH = re.compile(r"[/\\]torch[/\\]")
_FUNCTIONAL = re.compile(r"[/\\]torch[/\\]nn[/\\]functional\.py$")


@dataclass(frozen=True)
class Placed:
    """A sample with its place."""

    sample: StackSample
    phase: PhaseName
    """The phase, or one of ``HOST_PLACES``: where host code stands to the model's call."""
    program: ProgramFrames
    in_seam: bool = False
    """Whether the stack passes through the call that times the phase: torch's loader for data, a module for forward."""

    @property
    def count(self) -> int:
        return self.sample.count


class Placer:
    """Places the samples of a run's main threads."""

    def __init__(self, measurement: Measurement):
        self.seams = _Seams(measurement.plugins)
        self.lines = _lines(measurement, measurement.plugins.seams)
        self.jitted = _lines(measurement, jax.SEAMS)
        self.callbacks = _callback_functions(measurement)
        self.positions = _Positions(measurement.sites, measurement.plugins)
        self.validates = measurement.phase(VALIDATION.name) is not None
        self.is_server = measurement.phase(IDLE.name) is not None

    def place(self, sample: StackSample) -> Placed:
        program = program_frames(sample.frames)
        inner = _in_closure(sample.frames)
        called = (self.lines.get((frame.file, frame.line), "") for frame, _ in reversed(program_frames(inner)))
        in_event = any((frame.file, short(frame.function)) in self.callbacks for frame in sample.frames)
        seam = CALLBACK.name if in_event else self.seams.phase(inner) or next(filter(None, called), "")
        seam = seam or self._compiled(program)
        phase = self._phase(seam, sample.frames, program)
        in_seam = seam == phase
        if seam in (FORWARD.name, DATA_WAIT.name) and self.validates and self.positions.is_elsewhere(program):
            phase = VALIDATION.name
        return Placed(sample, phase, program, in_seam)

    def _phase(self, seam: str, frames: Sequence[Frame], program: ProgramFrames) -> str:
        if seam in self.seams.serving:
            return seam
        if vocabulary.is_callback_library(frames):
            return CALLBACK.name
        if self.is_server and _is_idle(frames, program):
            return IDLE.name
        if any(_is_env_step(frame, function) for frame, function in program):
            return ENV.name
        if seam:
            return seam
        if _calls_functional(frames):
            return FORWARD.name
        return self.positions.place(program, frames)

    def _compiled(self, program: ProgramFrames) -> str:
        """The phase of the compiled function that the program's own deepest line calls; its stack shows no frame."""
        frame = program[-1][0] if program else None
        return self.jitted.get((frame.file, frame.line), "") if frame else ""


class _Seams:
    """How stacks show the calls of seams, and which phases they are of."""

    def __init__(self, plugins: Plugins):
        self.serving = tuple(phase.name for phase in plugins.all_phases if phase.serves)
        self._frames = [
            (re.compile(file), re.compile(f"^({function})$"), seam.phase)
            for seam in seams.built_in() + plugins.seams
            if seam.phase is not None
            for file, function in seam.frames
        ]

    def phase(self, frames: Sequence[Frame]) -> str:
        """The phase of the innermost seam, but what serves (loading, env) claims all that happens in it.

        Empty where no seam is on the stack.
        """
        phase = ""
        for frame in frames:
            inner = self._of(frame)
            if inner and not (inner == FORWARD.name and phase == BACKWARD.name):
                phase = inner
            if phase in self.serving:
                return phase
        return phase

    def _of(self, frame: Frame) -> str:
        function = short(frame.function)
        shown = (phase for files, names, phase in self._frames if files.search(frame.file) and names.match(function))
        return next(shown, "")


def _in_closure(frames: Sequence[Frame]) -> Sequence[Frame]:
    """The frames below the call of a closure by an optimizer of torch's; all of them where there is none.

    A step calls nothing else outside of torch, but for that of an optimizer of the program's own, which it is around.
    """
    pairs = zip(frames, frames[1:], range(1, len(frames)))
    calls = (
        place for above, below, place in pairs
        if _OPTIMIZER.search(above.file) and not _TORCH.search(below.file) and short(below.function) != "step"
    )  # fmt: skip
    return frames[max(calls, default=0) :]


def _lines(measurement: Measurement, known: Sequence[Seam]) -> dict[tuple[str, int], str]:
    """The program's lines that call these seams, and their phase: the functions' own frames need not be known."""
    phases = {}
    for site in measurement.sites:
        seam = seam_of(site.seam, known)
        if seam is not None and seam.phase is not None:
            phases[(site.file, site.line)] = seam.phase
    return phases


def _callback_functions(measurement: Measurement) -> set[tuple[str, str]]:
    """File and name of the functions that a framework calls on its events, whatever they are called."""
    functions = {
        (callback.file, name)
        for callback in measurement.callbacks
        if callback.file
        for name in (callback.event, short(callback.callback))
    }
    return {(file, name) for file, name in functions if not name.startswith("<")}  # a file may have many lambdas


class _Positions:
    """Where a line stands to the calls of the model, backward and the optimizer in the loop."""

    def __init__(self, sites: Iterable[SeamSite], plugins: Plugins):
        self.paths: dict[str, list[_CallPath]] = defaultdict(list)
        self.training: list[_CallPath] = []
        sites = [_of_model(site, plugins) for site in sites]
        trains = any(site.grad for site in sites if site.seam == modules.FORWARD.event)
        self.has_loader = any(site.grad or not trains for site in sites if site.seam == loader.NEXT.event)
        """Training takes its batches from a loader of torch's, whose calls are timed."""
        for site in sites:
            path = [*reversed(site.callers), (site.file, site.function, site.line)]
            self.paths[site.seam].append(path)
            if site.grad and site.seam in (modules.FORWARD.event, loader.NEXT.event):
                self.training.append(path)

    def relation(self, program: ProgramFrames, seam: str) -> int:
        """-1 before the seam's first call, 1 after its last, 0 unknown."""
        return _relation(program, self.paths.get(seam, ()))

    def _hands_batch(self, program: ProgramFrames) -> bool:
        """Whether the line in the loop makes what the model is called with, whoever wrote what it calls."""
        if environments.STEP.event in self.paths:
            return False  # observations are no batches
        partings = (_parting(program, path) for path in self.paths.get(modules.FORWARD.event, ()))
        return any(dataflow.hands_batch(frame.file, frame.line, line) for frame, line in filter(None, partings))

    def is_elsewhere(self, program: ProgramFrames) -> bool:
        """Whether a call of the model or the loader is made from no place that training makes it from."""
        return bool(self.training) and not any(
            len(program) >= len(path)
            and all(
                (frame.file, short(frame.function), frame.line) == place for (frame, _), place in zip(program, path)
            )
            for path in self.training
        )

    def place(self, program: ProgramFrames, frames: Sequence[Frame]) -> str:
        calls = source.calls_at(program[-1][0].file, program[-1][0].line) if program else ()
        inner = _inside(program, self.paths)
        if vocabulary.is_server(frames):  # which writes answers, and reads what it is asked
            inner = [each for each in inner if not vocabulary.is_server(each[:1])]
            calls = calls if inner and inner[-1] == program[-1] else ()
        forward = self.relation(program, modules.FORWARD.event)
        backward = self.relation(program, autograd.BACKWARD.event)
        optimized = self.relation(program, optimizer.STEP.event)
        trains = optimizer.STEP.event in self.paths or autograd.BACKWARD.event in self.paths
        called = [function.qualname for _, function in inner]
        named = _named(called)
        makes_data = _makes_data(inner) or _is_iterated(frames, inner)
        if forward < 0 or (forward == 0 and makes_data):
            if named == CALLBACK.name and not makes_data:
                return CALLBACK.name
            if vocabulary.is_server(frames):  # what a request brings is no batch of data
                loads = vocabulary.calls_storage(calls) or vocabulary.is_network_library(_called(frames))
            else:
                loads = makes_data or any(vocabulary.names_data(name) for name in called) or self._hands_batch(program)
                loads = loads or vocabulary.calls_storage(calls) or vocabulary.is_network_library(frames)
            return DATA_WAIT.name if loads and not self.has_loader else BEFORE_MODEL
        if named == DATA_WAIT.name and _relation(program, self.training) < 0 and not vocabulary.is_server(frames):
            return BEFORE_MODEL if self.has_loader else DATA_WAIT.name
        if named == CALLBACK.name or vocabulary.calls_callback(calls):
            return CALLBACK.name
        if forward == 0 and not program:
            return OTHER.name
        if forward > 0 and trains and backward < 0:
            return BEFORE_BACKWARD
        if forward > 0 and not trains:
            return AFTER_MODEL
        if optimized > 0 or backward > 0:
            return AFTER_TRAINING
        return OTHER.name


def _named(called: Sequence[str]) -> str:
    """What the functions' names say that they do, callback or data: the outermost that says one thing of them only."""
    for name in called:
        is_callback, makes_data = vocabulary.names_callback(name), vocabulary.names_data(name)
        if is_callback != makes_data:
            return CALLBACK.name if is_callback else DATA_WAIT.name
    return CALLBACK.name if any(vocabulary.names_callback(name) for name in called) else ""


def _of_model(site: SeamSite, plugins: Plugins) -> SeamSite:
    """The same, but whatever framework the model is of, its calls have one name."""
    seam = seam_of(site.seam, seams.built_in() + plugins.seams)
    is_model = seam is not None and seam.counts == Tick.FORWARD
    return msgspec.structs.replace(site, seam=modules.FORWARD.event) if is_model else site


def _relation(program: ProgramFrames, paths: Iterable[_CallPath]) -> int:
    """-1 before all of these calls that it can be told of, 1 after them, 0 unknown."""
    relations = {_compare(program, path) for path in paths} - {0}
    return relations.pop() if len(relations) == 1 else 0


def _compare(program: ProgramFrames, path: _CallPath) -> int:
    """Where the first frames that part from the path stand to it: -1 before, 1 after, 0 not to be told."""
    parting = _parting(program, path)
    if parting is None:
        return 0
    frame, line = parting
    return -1 if frame.line < line else 1


def _parting(program: ProgramFrames, path: _CallPath) -> tuple[Frame, int] | None:
    """The frame that is in a function of the path, but on another line, and the path's; None if no frame is."""
    for (frame, _), (file, function, line) in zip(program, path):
        if frame.file != file or short(frame.function) != function:
            return None
        if frame.line != line:
            return frame, line
    return None


def _inside(
    program: ProgramFrames,
    paths: dict[str, list[_CallPath]],
) -> ProgramFrames:
    """The program's frames below the loop: those of no function that itself leads to a seam's call."""
    leading = {(file, function) for lists in paths.values() for path in lists for file, function, _ in path}
    return [(frame, function) for frame, function in program if (frame.file, short(frame.function)) not in leading]


def _makes_data(inner: ProgramFrames) -> bool:
    """Whether the outermost function below the loop is a generator or an iterator's or dataset's method."""
    if not inner:
        return False
    _, function = inner[0]
    return function.generator or short(function.qualname) in ("__next__", "__iter__", "__getitem__", "__getitems__")


def _is_iterated(frames: Sequence[Frame], inner: ProgramFrames) -> bool:
    """Whether the outermost function below the loop is called by an iterator of what runs the loop, Lightning's say."""
    if not inner or inner[0][0] not in frames:
        return False
    above = itertools.takewhile(
        lambda frame: not is_program_file(frame.file), reversed(frames[: frames.index(inner[0][0])])
    )
    return any(short(frame.function) == "__next__" for frame in above)


def _calls_functional(frames: Sequence[Frame]) -> bool:
    """Whether the deepest of the program's frames calls torch.nn.functional, a loss most often: model mathematics."""
    inner = _called(frames)
    return bool(inner) and bool(_FUNCTIONAL.search(inner[0].file))


def _called(frames: Sequence[Frame]) -> Sequence[Frame]:
    """What the deepest of the program's frames calls; all where none is the program's."""
    below = itertools.takewhile(lambda frame: not is_program_file(frame.file), reversed(frames))
    return [*below][::-1]


def _is_idle(frames: Sequence[Frame], program: ProgramFrames) -> bool:
    """Whether a server's own loop waits, in no code of the program that it would call for a request."""
    server = [frame for frame, _ in program if vocabulary.is_server([frame])]
    return bool(server) and program[-1][0] == server[-1] and vocabulary.waits(frames)


def _is_env_step(frame: Frame, function: source.SourceFunction) -> bool:
    """An environment without a known base class: its class steps and resets.

    One that steps several at once may split that: ``step_wait`` is what they are waited for in.
    """
    if short(frame.function) not in ("step", "reset", "_step", "step_wait"):
        return False
    methods = source.methods_of(frame.file, function.class_name)
    return "reset" in methods and not methods.isdisjoint(("step", "step_wait")) and "forward" not in methods


def short(function: str) -> str:
    """A frame's function without its class: from Python 3.11 on, the sampler gives qualified names."""
    return function.rpartition(".")[2]


def program_frames(frames: Sequence[Frame], is_programs: Callable[[str], bool] = is_program_file) -> ProgramFrames:
    """The frames of the program's own files, with their functions.

    A tensor subclass sees each operator pass by: who called the operator is meant, not who handed it on.
    """
    return tuple(
        (frame, source.function_at(frame.file, frame.line, short(frame.function)))
        for frame in frames
        if is_programs(frame.file) and short(frame.function) not in _HANDED_ON
    )


def is_call_of(seam: Seam, frame: Frame) -> bool:
    """Whether a frame is of a call of the seam."""
    name = short(frame.function)
    return any(re.search(file, frame.file) and re.fullmatch(function, name) for file, function in seam.frames)


def is_import(frames: Sequence[Frame]) -> bool:
    """Whether the deepest of the program's frames is importing a module: that is before the steps, and in none."""
    below = itertools.takewhile(lambda frame: not is_program_file(frame.file), reversed(frames))
    return any(frame.file.startswith("<frozen importlib") for frame in below)


def count(samples: Iterable[Placed]) -> int:
    """How many samples were taken, alike or not."""
    return sum(placed.count for placed in samples)


def leading_phase(samples: Iterable[Placed], otherwise: str) -> str:
    """The phase or place that most of these samples are in; ``otherwise`` where there are none."""
    counts: Counter[str] = Counter()
    for placed in samples:
        counts[placed.phase] += placed.count
    return max(counts, key=lambda phase: counts[phase], default=otherwise)


def is_idle(placed: Placed) -> bool:
    """Whether a worker's sample is a wait for something to do: no code of the program's, no library's work."""
    if placed.program:
        return False
    waits = ("get", "poll", "_poll", "_recv", "wait", "select", "accept")
    return any(short(frame.function) in waits for frame in placed.sample.frames)

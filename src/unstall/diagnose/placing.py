"""Where in the step a stack sample is: its phase, or the place of host code between the calls of the seams.

The phase of a sample is in its own stack, so it is right even where phase timers are not. A sample of no seam is
placed by what it calls, and by where its line stands to the lines that call the model and the optimizer.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unstall.child import seams
from unstall.child.seams import environments, jax
from unstall.child.user_files import is_program_file
from unstall.diagnose import source, vocabulary
from unstall.diagnose.positions import Positions
from unstall.diagnose.program_frames import ProgramFrames, called_by_program, program_frames, short
from unstall.records.measurements import Measurement
from unstall.records.observations import Frame, StackSample
from unstall.records.vocabulary import (
    BACKWARD,
    CALLBACK,
    DATA_WAIT,
    ENV,
    FORWARD,
    IDLE,
    VALIDATION,
    PhaseName,
    Plugins,
    Seam,
    seam_of,
)

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
        self.positions = Positions(measurement.sites, measurement.plugins)
        self.validates = measurement.phase(VALIDATION.name) is not None and measurement.kind != "env"
        self.evaluations = _evaluating_functions(measurement)
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
        if any((frame.file, short(frame.function)) in self.evaluations for frame, _ in program):
            phase = VALIDATION.name
        if seam in (FORWARD.name, DATA_WAIT.name) and self.validates and self.positions.is_elsewhere(program, seam):
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


def _evaluating_functions(measurement: Measurement) -> set[tuple[str, str]]:
    """File and name of the functions that lead to an environment in which the policy is evaluated, and to no other."""
    paths: dict[bool, set[tuple[str, str]]] = {True: set(), False: set()}
    for site in measurement.sites:
        if site.seam in (environments.STEP.event, environments.RESET.event):
            places = [(site.file, site.function), *((file, function) for file, function, _ in site.callers)]
            paths[site.evaluates].update(places)
    return paths[True] - paths[False]


def _callback_functions(measurement: Measurement) -> set[tuple[str, str]]:
    """File and name of the functions that a framework calls on its events, whatever they are called."""
    functions = {
        (callback.file, name)
        for callback in measurement.callbacks
        if callback.file
        for name in (callback.event, short(callback.callback))
    }
    return {(file, name) for file, name in functions if not name.startswith("<")}  # a file may have many lambdas


def _calls_functional(frames: Sequence[Frame]) -> bool:
    """Whether the deepest of the program's frames calls torch.nn.functional, a loss most often: model mathematics."""
    inner = called_by_program(frames)
    return bool(inner) and bool(_FUNCTIONAL.search(inner[0].file))


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

"""Where in the step a stack sample is: its phase, or the place of host code between the calls of the seams.

The phase of a sample is in its own stack, so it is right even where phase timers are not. A sample of no seam is
placed by what it calls, and by where its line stands to the lines that call the model and the optimizer.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unstall.child import seams
from unstall.child.seams import autograd, loader, modules, optimizer
from unstall.child.user_files import is_user_file
from unstall.diagnose import source, vocabulary
from unstall.records.measurements import Measurement, Site
from unstall.records.observations import Frame, StackSample
from unstall.records.vocabulary import BACKWARD, FORWARD, Plugins, seam_of

UserFrames = Sequence[tuple[Frame, source.Function]]
"""The user's frames of a stack, outermost first, with the functions they are in."""

_CallPath = Sequence[tuple[str, str, int]]
"""(file, function, line) of the user's frames that lead to a call of a seam, outermost first."""

_FUNCTIONAL = re.compile(r"[/\\]torch[/\\]nn[/\\]functional\.py$")


@dataclass(frozen=True)
class Placed:
    """A sample with its place."""

    sample: StackSample
    phase: str
    """A phase of the schema, or before, between, after: host code by where it stands to the model's call."""
    user: UserFrames
    in_seam: bool = False
    """Whether the stack passes through the call that times the phase: torch's loader for data, a module for forward."""

    @property
    def count(self) -> int:
        return self.sample.count


class Placer:
    """Places the samples of a run's main threads."""

    def __init__(self, measurement: Measurement):
        self.seams = _Seams(measurement.plugins)
        self.lines = _plugin_lines(measurement)
        self.positions = _Positions(measurement.sites)
        self.validates = measurement.phase("validation") is not None

    def place(self, sample: StackSample) -> Placed:
        user = user_frames(sample.frames)
        called = (self.lines.get((frame.file, frame.line), "") for frame, _ in reversed(user))
        seam = self.seams.phase(sample.frames) or next(filter(None, called), "")
        phase = self._phase(seam, sample.frames, user)
        in_seam = seam == phase
        if seam in ("forward", "data_wait") and self.validates and self.positions.is_elsewhere(user):
            phase = "validation"
        return Placed(sample, phase, user, in_seam)

    def _phase(self, seam: str, frames: Sequence[Frame], user: UserFrames) -> str:
        if seam in self.seams.serving:
            return seam
        if vocabulary.is_callback_library(frames):
            return "callback"
        if any(_is_env_step(frame, function) for frame, function in user):
            return "env"
        if seam:
            return seam
        if _calls_functional(frames):
            return "forward"
        return self.positions.place(user, frames)


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


def _plugin_lines(measurement: Measurement) -> dict[tuple[str, int], str]:
    """The user's lines that call a plug-in's seam, and its phase: the function's own frames need not be known."""
    phases = {}
    for site in measurement.sites:
        seam = seam_of(site.seam, measurement.plugins.seams)
        if seam is not None and seam.phase is not None:
            phases[(site.file, site.line)] = seam.phase
    return phases


class _Positions:
    """Where a line stands to the calls of the model, backward and the optimizer in the loop."""

    def __init__(self, sites: Iterable[Site]):
        self.paths: dict[str, list[_CallPath]] = defaultdict(list)
        self.training: list[_CallPath] = []
        self.has_loader = False
        for site in sites:
            path = [*reversed(site.callers), (site.file, site.function, site.line)]
            self.paths[site.seam].append(path)
            if site.grad and site.seam in (modules.FORWARD.event, loader.NEXT.event):
                self.training.append(path)
            self.has_loader = self.has_loader or site.seam == loader.NEXT.event

    def relation(self, user: UserFrames, seam: str) -> int:
        """-1 before the seam's first call, 1 after its last, 0 unknown."""
        relations = {_compare(user, path) for path in self.paths.get(seam, ())} - {0}
        return relations.pop() if len(relations) == 1 else 0

    def is_elsewhere(self, user: UserFrames) -> bool:
        """Whether a call of the model or the loader is made from no place that training makes it from."""
        return bool(self.training) and not any(
            len(user) >= len(path)
            and all((frame.file, short(frame.function), frame.line) == place for (frame, _), place in zip(user, path))
            for path in self.training
        )

    def place(self, user: UserFrames, frames: Sequence[Frame]) -> str:
        names = [function.qualname for _, function in user[1:]] or [function.qualname for _, function in user[-1:]]
        calls = source.calls_at(user[-1][0].file, user[-1][0].line) if user else ()
        inner = _inside(user, self.paths)
        forward = self.relation(user, modules.FORWARD.event)
        backward = self.relation(user, autograd.BACKWARD.event)
        optimized = self.relation(user, optimizer.STEP.event)
        trains = optimizer.STEP.event in self.paths or autograd.BACKWARD.event in self.paths
        called = [function.qualname for _, function in inner]
        if forward < 0 or (forward == 0 and _makes_data(inner)):
            if called and any(vocabulary.names_callback(name) for name in called) and not _makes_data(inner):
                return "callback"
            loads = _makes_data(inner) or any(vocabulary.names_data(name) for name in called)
            loads = loads or vocabulary.calls_storage(calls) or vocabulary.is_network_library(frames)
            return "data_wait" if loads and not self.has_loader else "before"
        if any(vocabulary.names_callback(name) for name in called) or vocabulary.calls_callback(calls):
            return "callback"
        if forward == 0 and not names:
            return "other"
        if forward > 0 and trains and backward < 0:
            return "between"
        if forward > 0 and not trains:
            return "after"
        if optimized > 0 or backward > 0:
            return "late"
        return "other"


def _compare(user: UserFrames, path: _CallPath) -> int:
    """Where the first frames that part from the path stand to it: -1 before, 1 after, 0 not to be told."""
    for (frame, _), (file, function, line) in zip(user, path):
        if frame.file != file or short(frame.function) != function:
            return 0
        if frame.line != line:
            return -1 if frame.line < line else 1
    return 0


def _inside(
    user: UserFrames,
    paths: dict[str, list[_CallPath]],
) -> UserFrames:
    """The user's frames below the loop: those of no function that itself leads to a seam's call."""
    leading = {(file, function) for lists in paths.values() for path in lists for file, function, _ in path}
    return [(frame, function) for frame, function in user if (frame.file, short(frame.function)) not in leading]


def _makes_data(inner: UserFrames) -> bool:
    """Whether the outermost function below the loop is a generator or an iterator's or dataset's method."""
    if not inner:
        return False
    _, function = inner[0]
    return function.generator or short(function.qualname) in ("__next__", "__iter__", "__getitem__", "__getitems__")


def _calls_functional(frames: Sequence[Frame]) -> bool:
    """Whether the deepest user frame calls a function of torch.nn.functional, a loss most often: model mathematics."""
    inner = list(itertools.takewhile(lambda frame: not is_user_file(frame.file), reversed(frames)))
    return bool(inner) and bool(_FUNCTIONAL.search(inner[-1].file))


def _is_env_step(frame: Frame, function: source.Function) -> bool:
    """An environment without a known base class: its class steps and resets."""
    if short(frame.function) not in ("step", "reset", "_step", "step_wait"):
        return False
    methods = source.methods_of(frame.file, function.class_name)
    return {"step", "reset"} <= methods and "forward" not in methods


def short(function: str) -> str:
    """A frame's function without its class: from Python 3.11 on, the sampler gives qualified names."""
    return function.rpartition(".")[2]


def user_frames(frames: Sequence[Frame]) -> UserFrames:
    """The frames of the user's own files, with their functions."""
    return tuple(
        (frame, source.function_at(frame.file, frame.line, short(frame.function)))
        for frame in frames
        if is_user_file(frame.file)
    )


def count(samples: Iterable[Placed]) -> int:
    """How many samples were taken, alike or not."""
    return sum(placed.count for placed in samples)


def is_idle(placed: Placed) -> bool:
    """Whether a worker's sample is a wait for something to do: no user code, no library work below the loop."""
    if placed.user:
        return False
    return any(
        short(frame.function) in ("get", "poll", "_poll", "wait", "select", "accept") for frame in placed.sample.frames
    )

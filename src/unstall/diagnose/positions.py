"""Where a line of the program stands to the lines that call the model, backward, the optimizer and the loader."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from unstall.child import seams
from unstall.child.seams import autograd, environments, loader, modules, optimizer
from unstall.child.user_files import is_program_file
from unstall.diagnose import dataflow, source, vocabulary
from unstall.diagnose.program_frames import ProgramFrames, called_by_program, short
from unstall.records.measurements import SeamSite
from unstall.records.observations import Frame
from unstall.records.vocabulary import CALLBACK, DATA_WAIT, FORWARD, OTHER, PhaseName, Plugins, Tick, seam_of

BEFORE_MODEL: PhaseName = "before"
BEFORE_BACKWARD: PhaseName = "between"
AFTER_MODEL: PhaseName = "after"
AFTER_TRAINING: PhaseName = "late"
HOST_PLACES = (BEFORE_MODEL, BEFORE_BACKWARD, AFTER_MODEL, AFTER_TRAINING, OTHER.name)
"""Places of host code that no seam times. The last is for code whose relation to the model's call is not known."""

_CallPath = Sequence[tuple[str, str, int]]
"""(file, function, line) of the program's frames that lead to a call of a seam, outermost first."""


class Positions:
    """Where a line stands to the calls of the model, backward and the optimizer in the loop."""

    def __init__(self, sites: Iterable[SeamSite], plugins: Plugins):
        self.paths: dict[str, list[_CallPath]] = defaultdict(list)
        self.training: dict[PhaseName, list[_CallPath]] = {FORWARD.name: [], DATA_WAIT.name: []}
        """By which training calls the model, and gets its batches."""
        sites = [_of_model(site, plugins) for site in sites]
        trains = any(site.grad for site in sites if site.seam == modules.FORWARD.event)
        self.has_loader = any(site.grad or not trains for site in sites if site.seam == loader.NEXT.event)
        """Training takes its batches from a loader of torch's, whose calls are timed."""
        for site in sites:
            path = [*reversed(site.callers), (site.file, site.function, site.line)]
            self.paths[site.seam].append(path)
            if site.grad and site.seam == modules.FORWARD.event:
                self.training[FORWARD.name].append(path)
            elif site.grad and site.seam == loader.NEXT.event:
                self.training[DATA_WAIT.name].append(path)

    def relation(self, program: ProgramFrames, seam: str) -> int:
        """-1 before the seam's first call, 1 after its last, 0 unknown."""
        return _relation(program, self.paths.get(seam, ()))

    def _hands_batch(self, program: ProgramFrames) -> bool:
        """Whether the line in the loop makes what the model is called with, whoever wrote what it calls."""
        if environments.STEP.event in self.paths:
            return False  # observations are no batches
        partings = (_parting(program, path) for path in self.paths.get(modules.FORWARD.event, ()))
        return any(dataflow.hands_batch(frame.file, frame.line, line) for frame, line in filter(None, partings))

    def is_elsewhere(self, program: ProgramFrames, phase: PhaseName) -> bool:
        """Whether a call of the model, or of the loader, is made from no place that training makes it from.

        The loader's is no place of the model's: where a framework asks for batches, all that it calls is beneath it.
        """
        paths = self.training[phase] or [*itertools.chain(*self.training.values())]
        return bool(paths) and not any(
            len(program) >= len(path)
            and all(
                (frame.file, short(frame.function), frame.line) == place for (frame, _), place in zip(program, path)
            )
            for path in paths
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
                loads = vocabulary.calls_storage(calls) or vocabulary.is_network_library(called_by_program(frames))
            else:
                loads = makes_data or any(vocabulary.names_data(name) for name in called) or self._hands_batch(program)
                loads = loads or vocabulary.calls_storage(calls) or vocabulary.is_network_library(frames)
            return DATA_WAIT.name if loads and not self.has_loader else BEFORE_MODEL
        if (
            named == DATA_WAIT.name
            and _relation(program, itertools.chain(*self.training.values())) < 0
            and not vocabulary.is_server(frames)
        ):
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

"""The words that pass between rooms: phases of a step, seams, patterns, and how a figure is known.

Every process of the user's program imports this, so it holds to the standard library, and to named tuples: the module
of data classes takes longer to import than everything else that starts a recording. Their annotations are no strings
(``from __future__``), which :class:`typing.NamedTuple` would compile one by one.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Literal, NamedTuple

# ------------------------------------------------------------------------------------------------ phases

PhaseName = str
"""The name of a phase, as reports have it: one of :data:`PHASE_NAMES`, or a plug-in's."""


class Phase(NamedTuple):
    """A part of a step on the main thread. Phases are disjoint, and together they are the step."""

    name: PhaseName
    what: str
    """What the time goes into, as a phrase: "waiting for the next batch"."""
    model: bool = False
    """Part of the model's mathematics, which torch's threads share out over the cores."""
    serves: bool = False
    """All that happens inside its calls belongs to it, modules too; stacks may show more of it than seams do."""


DATA_WAIT = Phase("data_wait", "waiting for the next batch", serves=True)
TRANSFER = Phase("transfer", "copies between host and device")
FORWARD = Phase("forward", "the model's forward pass", model=True)
BACKWARD = Phase("backward", "the backward pass", model=True)
OPTIMIZER = Phase("optimizer", "the optimizer's update", model=True)
DISPATCH = Phase("dispatch", "calls of compiled functions", model=True)
DEVICE = Phase("device", "waiting for what compiled functions compute", model=True)
COMPILE = Phase("compile", "tracing and compiling functions")
SYNC = Phase("sync", "waiting for the device's results")
COMM = Phase("comm", "communication between ranks")
ENV = Phase("env", "stepping the environment", serves=True)
CALLBACK = Phase("callback", "logging, metrics, plots and checkpoints", serves=True)
VALIDATION = Phase("validation", "validation between training steps")
IDLE = Phase("idle", "waiting for requests")
OTHER = Phase("other", "the program's own code between the calls above")

PHASES = (
    DATA_WAIT,
    TRANSFER,
    FORWARD,
    BACKWARD,
    OPTIMIZER,
    DISPATCH,
    DEVICE,
    COMPILE,
    SYNC,
    COMM,
    ENV,
    CALLBACK,
    VALIDATION,
    IDLE,
    OTHER,
)
"""The built-in phases, in the order in which reports list them; those of plug-ins follow."""

PHASE_NAMES: tuple[PhaseName, ...] = tuple(phase.name for phase in PHASES)
MODEL_PHASES: tuple[PhaseName, ...] = tuple(phase.name for phase in PHASES if phase.model)


def can_name_a_phase(name: str) -> bool:
    """Whether a phase may be called so: small ASCII letters, digits and ``_``, as it becomes a class in HTML."""
    return name.isidentifier() and name.isascii() and name == name.lower() and len(name) <= 32


def in_order(names: Iterable[PhaseName]) -> list[PhaseName]:
    """Names of phases in the order of reports: the built-in ones, then others as they come, each once."""
    given = dict.fromkeys(names)
    return [name for name in PHASE_NAMES if name in given] + [name for name in given if name not in PHASE_NAMES]


# ------------------------------------------------------------------------------------------------ seams


class Tick(IntEnum):
    """What the calls of a seam count. Steps are counted by these, whichever library the calls are of.

    The first five may mark the steps of a loop, the surest first. Each is a slot in the header of a recording: a seam
    of a plug-in counts as one of them, that of another library of environments as ``ENV``, of another framework's model
    as ``FORWARD``, of a loop of its own as ``EXPLICIT``.
    """

    EXPLICIT = 0
    """A turn of a loop that the program marks itself."""
    ENV = 1
    OPTIMIZER = 2
    REQUEST = 3
    """Text that a model generates, for a batch of prompts: many calls of the model."""
    FORWARD = 4
    DATA = 5
    """A batch that was asked for."""
    BACKWARD = 6
    COMM = 7
    OTHER = 8
    """No step, but its first calls are looked at, so that a report can say where they are made."""


TRAINING = ("optimizer", "backward")
"""Kinds of step in which weights learn: by an optimizer, or by an update of the program's own."""


class SeamGroup(IntEnum):
    """Seams whose calls may be nested in each other: of those on one thread only the outermost is recorded."""

    MODULES = 0
    ENVIRONMENTS = 1
    COLLECTIVES = 2
    CALLBACKS = 3
    EVENTS = 4
    """Calls of the callbacks of frameworks."""
    REQUESTS = 5


class Seam(NamedTuple):
    """A place where a library is hooked into, and what the time of its calls means."""

    event: str
    """The name of its spans; it begins with ``~``, as no span of a user's does. ``~comm.*``: a family of names."""
    phase: PhaseName | None = None
    """None: its time belongs to the phase that it happens in."""
    counts: Tick | None = None
    """None: its calls count nothing and are not looked at."""
    group: SeamGroup | None = None
    stub: str = ""
    """The kind of work, as experiments name it: the ``component`` of the intervention that takes it away. The file of
    the seam finds the functions that do it."""
    frames: tuple[tuple[str, str], ...] = ()
    """How a stack shows a call: patterns (``re``) found in a frame's file and matched by the whole of its function."""

    def covers(self, name: str) -> bool:
        """Whether a span of this name is one of its calls."""
        return name.startswith(self.event[:-1]) if self.event.endswith(".*") else name == self.event

    def named(self, member: str) -> str:
        """The name of one of a family's spans: ``~comm.*`` and ``barrier`` give ``~comm.barrier``."""
        return self.event[:-1] + member

    def member(self, name: str) -> str:
        """The inverse of :meth:`named`."""
        return name.removeprefix(self.event[:-1])

    @property
    def drives_loop(self) -> bool:
        """Whether its calls mark the thread, or the process, that runs the main loop."""
        return self.counts in (Tick.EXPLICIT, Tick.ENV, Tick.OPTIMIZER, Tick.REQUEST, Tick.FORWARD)


def seam_of(name: str, seams: Iterable[Seam]) -> Seam | None:
    """The seam that a span of this name is a call of; None for a user's span."""
    return next((seam for seam in seams if seam.covers(name)), None)


def is_seam(name: str) -> bool:
    """Whether a span's name is a seam's; other names are the user's own."""
    return name.startswith("~")


def label(name: str) -> str:
    """A span's name as people see it."""
    return name.removeprefix("~")


class Plugins(NamedTuple):
    """The phases and seams that plug-ins added to a run."""

    phases: tuple[Phase, ...] = ()
    seams: tuple[Seam, ...] = ()

    @property
    def all_phases(self) -> tuple[Phase, ...]:
        """The built-in ones, and these."""
        return PHASES + self.phases


# ------------------------------------------------------------------------------------------------ patterns

PatternName = str
"""The name of a pattern; which there are is said by their objects, see :mod:`unstall.diagnose.patterns`."""

HEALTHY: PatternName = "healthy"
UNEXPLAINED: PatternName = "unexplained"
NO_VERDICT: PatternName = "no-verdict"
Trait = Literal["useful", "fixed", "untimed"]
"""Of a pattern: the time goes into the model's own work; no experiment can make it free; it costs something else than
time."""
WITHOUT_CULPRIT = (HEALTHY, UNEXPLAINED, NO_VERDICT)
"""Patterns that blame nobody: verdicts where nothing is worth fixing, or nothing can be said; never a runner-up."""
KnownBy = Literal["measured", "predicted", "estimated"]
Confidence = Literal["high", "medium", "low"]

"""The report contract: the typed records of a run's report, field by field the published JSON schema ``unstall/2``.

Times are seconds, shares are 0..1, sizes are bytes, unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, Literal

import msgspec

from unstall.records.communication import Communication
from unstall.records.compiled import CompiledFrame
from unstall.records.encoding import indented_json
from unstall.records.experiments import Ceiling, ReportedExperiment, Study
from unstall.records.proof import Proof
from unstall.records.remedies import SAMENESS_MEANS, Sameness, TriedRemedy
from unstall.records.run import (
    Account,
    Generation,
    RunInfo,
    Throughput,
    Utilization,
)
from unstall.records.speedup import ExpectedGain, Speedup
from unstall.records.trace import TraceFacts
from unstall.records.vocabulary import NO_VERDICT, Confidence, KnownBy, PatternName, PhaseName, Trait

SCHEMA: Literal["unstall/2"] = "unstall/2"


ProcessRole = Literal["main", "worker", "rank", "other"]
"""The kind of a process: the main one, a worker of a DataLoader, a rank of a distributed program, or another."""


class Caller(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """A line that leads to another function."""

    function: str
    file: str
    line: int
    share: float | None = None
    """Share of the process's time that all it calls there takes; None where that is not known."""


class LineTime(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """A line of the program, and its share of the time of the process that it runs in."""

    function: str
    file: str
    line: int
    share: float
    where: str = "main"
    """The process: ``main``, ``worker``, ``rank 3``. The next two fields say the same and follow from it."""
    process: ProcessRole = "main"
    index: int | None = None
    """Number of the rank or worker; None where it has none, or all workers are meant."""
    package: str = ""
    """The distribution that the file is installed by; empty where it is the user's own."""
    version: str = ""
    """Version of the package, where its metadata says."""
    called_by: Caller | None = None
    """The user's line that leads to one in a library; None where there is none, or it is not known."""

    def __post_init__(self) -> None:
        role, _, number = self.where.partition(" ")
        process = role if role in ("main", "worker", "rank") else "other"
        is_number = number.isdecimal() and len(number) < 10
        msgspec.structs.force_setattr(self, "process", process)
        msgspec.structs.force_setattr(self, "index", int(number) if is_number else None)

    @property
    def name(self) -> str:
        """The function's name; for module-level code, the file and line it stands on."""
        return f"{PurePath(self.file).name}:{self.line}" if self.function.startswith("<") else self.function


class PhaseTime(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """A disjoint part of the mean step on the main thread."""

    name: PhaseName
    share: float
    mean_s: float
    p95_s: float = 0.0
    network_s: float = 0.0
    network_bytes: float = 0.0
    blocked_s: float = 0.0
    """Part of it spent neither on a core nor waiting for one: disk, network, sleep, locks, other ranks."""
    cpu_s: float | None = None
    """Part of it in which the main thread was on a core, as timed; None where no call in it was measured."""
    wall_s: float | None = None
    """Seconds a step as the calls were timed, before code that no call claims was told apart by its samples."""
    attributed_s: float | None = None
    """Seconds a step with that code in its own phase, and with the time that other programs added.

    ``mean_s`` is the same without what other programs added: it is what verdict, evidence and shares rest on.
    """
    functions: Sequence[LineTime] = msgspec.field(default_factory=list)
    """The functions that take the most of a sizeable `other`, at their hottest line; shares are of the step."""
    what: str = ""
    """What the time goes into, as a phrase, where a plug-in added the phase; empty for the built-in ones."""


class Culprit(LineTime, kw_only=True, omit_defaults=True, frozen=True):
    """The component that is blamed: the deepest line of the user's or of a library that holds the time."""

    code: str = ""
    """The source line itself, stripped."""
    via: str = ""
    """The library call the line spends its time in, if any."""
    callers: Sequence[Caller] = msgspec.field(default_factory=list)
    """The program's functions that lead to it, the nearest first, without those that run the loop.

    What is called too often is mended there.
    """

    @property
    def label(self) -> str:
        """``function file:line``."""
        return f"{self.function} {self.file}:{self.line}"


class NextStep(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """What to do after a finding, where its pattern knows better than to prove it by experiment."""

    label: str
    """What the option shows, as in "the lines that allocate:"."""
    option: str = ""
    """The option of `unstall run` that shows them."""


class Finding(msgspec.Struct, kw_only=True, frozen=True):
    """One pattern that matched: who, why, how much faster it could get, how sure we are."""

    pattern: PatternName
    headroom: float
    headroom_known_by: KnownBy
    confidence: Confidence
    evidence: Sequence[str]
    advice: Sequence[str]
    cause: str | None = None
    culprit: Culprit | None = None
    summary: str = ""
    """What takes the time, as the middle of the headline: "83 % of each step waits for the next batch"."""
    condition: str = ""
    """Under which the step is so much faster: "without it", "with kernels twice as fast"; empty where that is plain."""
    share: float | None = None
    """Share of the step, as headline and first line of evidence say it; None where no share tells the pattern."""
    phases: tuple[str, ...] = ()
    """The phases whose shares make up ``share``; empty where it is not made of whole phases."""
    ceiling: Speedup | None = None
    """If the blamed component took no time; None where that is not known, or nobody is blamed.

    ``headroom`` is its value; where there is none, the gain that is known instead, or 1.
    """
    expected_gain: ExpectedGain | None = None
    """Gain of the remedy that fits best; None where none is known."""
    next_step: NextStep | None = None
    traits: tuple[Trait, ...] = ()
    """What is true of the pattern."""


class ModuleTime(msgspec.Struct, kw_only=True, frozen=True):
    """Mean forward seconds a step of one module, its children's time left out of ``self_s``."""

    name: str
    type: str
    calls_per_step: float
    forward_s: float
    self_s: float


class Hotspot(LineTime, kw_only=True, omit_defaults=True, frozen=True):
    """A line of the program, by its share of the stack samples."""

    phase: str = "other"
    via: str = ""


class SpanTime(msgspec.Struct, kw_only=True, frozen=True):
    """A span the user named with ``unstall.span``."""

    name: str
    count: int
    total_s: float
    mean_s: float


class CallbackTime(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """One event of a callback, over the whole run: calls inside those of another callback belong to that."""

    framework: str
    """The library that calls it, or, of a library's own call (``torch.save``), that library."""
    callback: str
    """The callback's class, or the plain function that was given."""
    event: str
    """The method that was called."""
    calls: int
    total_s: float
    mean_s: float
    share: float
    """Share of the run's wall time."""
    step_s: float = 0.0
    """Seconds a step, over the measured steps."""
    file: str = ""
    line: int = 0
    """Where the method is written; 0 where that is not known."""

    @property
    def name(self) -> str:
        """``Class.event``."""
        return f"{self.callback}.{self.event}"


class Startup(msgspec.Struct, kw_only=True, frozen=True):
    """Wall time outside the measured steps, so that nothing of the run is unaccounted for."""

    before_first_batch_s: float
    worker_start_s: float
    warmup_s: float
    epoch_gaps_s: float
    after_last_step_s: float
    set_up: LineTime | None = None
    """The function that holds the time before the first batch, and its share of that; None where none does."""
    wind_up: LineTime | None = None
    """The same of the time after the last step."""


class Report(msgspec.Struct, kw_only=True, frozen=True):
    """The report contract, version 1. Extra keys beyond the schema are allowed and additive."""

    kind: Literal["run", "simplify", "optimize", "prove", "trace"]
    run: RunInfo
    throughput: Throughput
    utilization: Utilization
    phases: Sequence[PhaseTime]
    """Phases of the step in the ``account`` below; their shares sum to 1."""
    verdict: Finding
    findings: Sequence[Finding]
    schema: str = SCHEMA
    account: Account | None = None
    """What the shares are shares of, where that is not the step as it was timed."""
    ceilings: Sequence[Ceiling] = msgspec.field(default_factory=list)
    experiments: Sequence[ReportedExperiment] = msgspec.field(default_factory=list)
    study: Study | None = None
    remedies: Sequence[TriedRemedy] = msgspec.field(default_factory=list)
    total_speedup: float | None = None
    total_ci95: tuple[float, float] | None = None
    patch: str | None = None
    hotspots: Sequence[Hotspot] = msgspec.field(default_factory=list)
    modules: Sequence[ModuleTime] = msgspec.field(default_factory=list)
    spans: Sequence[SpanTime] = msgspec.field(default_factory=list)
    callbacks: Sequence[CallbackTime] = msgspec.field(default_factory=list)
    """Callbacks by total time, the most first."""
    compiled: Sequence[CompiledFrame] = msgspec.field(default_factory=list)
    """The functions that torch.compile met, where it compiled any of them again, broke its graph or gave it up."""
    startup: Startup | None = None
    generation: Generation | None = None
    """The mean request of a run whose steps are requests."""
    communication: Communication | None = None
    """Communication of a run with several ranks."""
    proof: Proof | None = None
    """The result of `unstall prove`."""
    trace: TraceFacts | None = None
    """Figures of a GPU trace: `unstall trace`, and `unstall run` where there is a device."""

    def with_run(self, **changes: Any) -> Report:
        """The same report with other facts about its run, e.g. ``with_run(notes=[...])``."""
        return msgspec.structs.replace(self, run=msgspec.structs.replace(self.run, **changes))

    @property
    def sameness(self) -> Sameness | None:
        """Of the program with all remedies that are kept: the least of any; None where one of them has none."""
        measured = [remedy.sameness for remedy in self.remedies if remedy.kept]
        if None in measured:
            return None
        return next((level for level in reversed(SAMENESS_MEANS) if level in measured), None)

    def to_json(self) -> bytes:
        """The report as indented JSON that satisfies ``unstall/2``."""
        return indented_json(self)

    def _repr_html_(self) -> str | None:
        """The report in short, as a notebook shows it; None where nothing was registered that renders it."""
        return _html(self) if _html is not None else None

    @classmethod
    def from_json(cls, data: bytes | str) -> Report:
        """Read a report back; raises :class:`msgspec.ValidationError` naming the field that is wrong."""
        return _current(msgspec.json.decode(data, type=cls))


_html: Callable[[Report], str] | None = None


def register_html(render: Callable[[Report], str]) -> None:
    """Let notebooks show reports as HTML that ``render`` makes of them."""
    global _html
    _html = render


def costliest(report: Report) -> Finding | None:
    """The first finding that makes steps longer: what the verdict is about may not, such as growing memory."""
    return next((finding for finding in (report.verdict, *report.findings) if "untimed" not in finding.traits), None)


def _current(report: Report) -> Report:
    """A report of version 1 as version 2 would have it: a run without a step has no verdict, and is not healthy."""
    if report.schema != "unstall/1" or report.run.steps:
        return report
    verdict = msgspec.structs.replace(report.verdict, pattern=NO_VERDICT)
    return msgspec.structs.replace(report, verdict=verdict, findings=[verdict])

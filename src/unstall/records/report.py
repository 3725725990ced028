"""The report contract: the typed records of a run's report, field by field the published JSON schema ``unstall/2``.

Times are seconds, shares are 0..1, sizes are bytes, unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import PurePath
from typing import Any, Literal

import msgspec

from unstall.records.trace import TraceFacts
from unstall.records.vocabulary import NO_VERDICT, Confidence, KnownBy, PatternName, PhaseName

SCHEMA: Literal["unstall/2"] = "unstall/2"


class RunInfo(msgspec.Struct, kw_only=True, frozen=True):
    """What was run, when, how it ended, and on what."""

    id: str
    command: Sequence[str]
    started: str
    duration_s: float
    steps: int
    exit_code: int | None
    environment: Mapping[str, Any]
    warmup_steps: int = 0
    world_size: int = 1
    notes: Sequence[str] = msgspec.field(default_factory=list)
    """What could not be measured, and why; said plainly, one line each."""


class StepTime(msgspec.Struct, frozen=True):
    """Seconds a step, over the measured steps."""

    mean: float
    p50: float
    p95: float


class Throughput(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """Rates over the measured steps; what was not measured is absent."""

    steps_per_s: float | None
    batches_per_s: float | None = None
    samples_per_s: float | None = None
    env_steps_per_s: float | None = None
    flops_per_s: float | None = None
    mfu: float | None = None
    step_s: StepTime | None = None
    flops_coverage: float | None = None
    """Share of the operator calls seen for which a FLOP formula is known."""


class Utilization(msgspec.Struct, kw_only=True, frozen=True):
    """How busy the hardware was during the measured steps."""

    cpu: float | None = None
    gpu: Sequence[float] | None = None
    run_delay: float | None = None
    rss_peak_bytes: int | None = None
    rss_growth_bytes_per_step: float | None = None
    gpu_memory_peak_bytes: int | None = None
    gpu_memory_growth_bytes_per_step: float | None = None
    network_bytes_per_step: float | None = None
    disk_read_bytes_per_step: float | None = None
    disk_write_bytes_per_step: float | None = None
    other_processes_cores: float | None = None
    """Cores taken by processes outside this program, mean over the measured steps."""


class Phase(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """A disjoint part of the mean step on the main thread."""

    name: PhaseName
    share: float
    mean_s: float
    p95_s: float = 0.0
    network_s: float = 0.0
    network_bytes: float = 0.0
    blocked_s: float = 0.0
    """Part of it spent neither on a core nor waiting for one: disk, network, sleep, locks, other ranks."""
    wall_s: float | None = None
    """Seconds a step as the calls were timed, before code that no call claims was told apart by its samples."""
    attributed_s: float | None = None
    """Seconds a step with that code in its own phase, and with the time that other programs added.

    ``mean_s`` is the same without what other programs added: it is what verdict, evidence and shares rest on.
    """
    what: str = ""
    """What the time goes into, as a phrase, where a plug-in added the phase; empty for the built-in ones."""


class Account(msgspec.Struct, kw_only=True, frozen=True):
    """A step that was corrected: which correction, and what is left of it."""

    name: Literal["without_neighbours"]
    """The time that other programs kept threads of this one waiting for a core is taken out."""
    step_s: float
    """Seconds of the corrected step."""


ProcessRole = Literal["main", "worker", "rank", "other"]
"""Of a process: the main one, a worker of a DataLoader, a rank of a distributed program, or one named otherwise."""


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

    def __post_init__(self) -> None:
        role, _, number = self.where.partition(" ")
        process = role if role in ("main", "worker", "rank") else "other"
        is_number = number.isdecimal() and len(number) < 10
        msgspec.structs.force_setattr(self, "process", process)
        msgspec.structs.force_setattr(self, "index", int(number) if is_number else None)


class Culprit(LineTime, kw_only=True, omit_defaults=True, frozen=True):
    """The component that is blamed, in the user's own code where there is any."""

    code: str = ""
    """The source line itself, stripped."""
    via: str = ""
    """The library call the line spends its time in, if any."""

    @property
    def name(self) -> str:
        """The function's name; for module-level code, the file and line it stands on."""
        return f"{PurePath(self.file).name}:{self.line}" if self.function.startswith("<") else self.function

    @property
    def label(self) -> str:
        """``function file:line``."""
        return f"{self.function} {self.file}:{self.line}"


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
    """Of the step, as the headline and the first line of evidence say it; None where no share tells the pattern."""
    phases: tuple[str, ...] = ()
    """The phases whose shares make up ``share``; empty where it is not made of whole phases."""


class Ceiling(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """Steps per second if everything but this component, or this component alone, were free."""

    component: str
    steps_per_s: float
    known_by: KnownBy
    ci95: tuple[float, float] | None = None
    gap: float | None = None


class Experiment(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """One intervention and what it did to the step time."""

    name: str
    intervention: str
    ratio: float
    ci95: tuple[float, float]
    predicted_ratio: float | None = None
    segments: int | None = None
    component: str | None = None
    """What was free, or slowed, in it."""
    conclusive: bool = True
    """False where noise could explain what was seen, and could hide an effect that matters."""
    elasticity: float | None = None
    """Of a delay: relative change of the step time over that of the component's own time; 1 on the critical path."""
    notes: Sequence[str] = msgspec.field(default_factory=list)


class NotMeasured(msgspec.Struct, kw_only=True, frozen=True):
    """An experiment without a result, and why."""

    name: str
    intervention: str
    why: str


class Study(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """What the experiments of ``unstall simplify`` tell together. Seconds are a step's."""

    base_s: float
    """The step of the program as it is, in the experiments."""
    elasticity_sum: float | None = None
    """Of all components that were slowed: 1 where they account for the whole step."""
    elasticity_ci95: tuple[float, float] | None = None
    elasticity_says: str = ""
    """What the sum means, in words."""
    waiting_s: float | None = None
    """With cached batches the step is shorter by this, and by ``taken_s``."""
    taken_s: float | None = None
    """What the loader's workers cost by taking cores from the step: with placebos in their place it stays."""
    disagreements: Sequence[str] = msgspec.field(default_factory=list)
    """Where observation and experiment say different things: both, and why."""
    deeper: Sequence[str] = msgspec.field(default_factory=list)
    """What shows once the first bottleneck is gone."""
    failures: Sequence[NotMeasured] = msgspec.field(default_factory=list)
    untried: Sequence[str] = msgspec.field(default_factory=list)
    sandbox: str = ""
    """What kept the program's files as they were."""
    runs: int = 1
    """How often the program was started; more than for the trials where it ends before they do."""


class RemedyStatus(Enum):
    """What became of a change that ``unstall optimize`` thought of."""

    KEPT = "kept"
    SLOWER = "slower"
    """Measured, and no faster than the program without it."""
    NOT_EQUIVALENT = "not_equivalent"
    """It computes something else, or that could not be compared."""
    INCONCLUSIVE = "inconclusive"
    """Its gain is not certain, with all runs that there was time for."""
    FAILED = "failed"
    """The changed program ended with an error or did not end."""
    UNTRIED = "untried"
    """It looks worth a trial, for which there was no time."""
    BELOW_WORTH = "below_worth"
    """Not tried, as its predicted gain is too small."""
    ADVICE = "advice"
    """For a person to do: it is never tried."""


class Remedy(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """A change that ``unstall optimize`` thought of: what became of it, and why it is not kept."""

    name: str
    exactness: Literal["exact", "close", "training-changing"]
    kept: bool
    status: RemedyStatus | None = None
    """None in reports that were written before there was a status."""
    speedup: float | None = None
    ci95: tuple[float, float] | None = None
    predicted_speedup: float | None = None
    equivalent: bool | None = None
    why_not: str | None = None


class ModuleTime(msgspec.Struct, kw_only=True, frozen=True):
    """Mean forward seconds a step of one module, its children's time left out of ``self_s``."""

    name: str
    type: str
    calls_per_step: float
    forward_s: float
    self_s: float


class Hotspot(LineTime, kw_only=True, omit_defaults=True, frozen=True):
    """A line of the user's, by its share of the stack samples."""

    phase: str = "other"
    via: str = ""


class SpanTime(msgspec.Struct, kw_only=True, frozen=True):
    """A span the user named with ``unstall.span``."""

    name: str
    count: int
    total_s: float
    mean_s: float


class Startup(msgspec.Struct, kw_only=True, frozen=True):
    """Wall time outside the measured steps, so that nothing of the run is unaccounted for."""

    before_first_batch_s: float
    worker_start_s: float
    warmup_s: float
    epoch_gaps_s: float
    after_last_step_s: float


class Report(msgspec.Struct, kw_only=True, frozen=True):
    """The report contract, version 1. Extra keys beyond the schema are allowed and additive."""

    kind: Literal["run", "simplify", "optimize", "trace"]
    run: RunInfo
    throughput: Throughput
    utilization: Utilization
    phases: Sequence[Phase]
    """Of the step in the ``account`` below; their shares sum to 1."""
    verdict: Finding
    findings: Sequence[Finding]
    schema: str = SCHEMA
    account: Account | None = None
    """What the shares are shares of, where that is not the step as it was timed."""
    ceilings: Sequence[Ceiling] = msgspec.field(default_factory=list)
    experiments: Sequence[Experiment] = msgspec.field(default_factory=list)
    study: Study | None = None
    remedies: Sequence[Remedy] = msgspec.field(default_factory=list)
    total_speedup: float | None = None
    patch: str | None = None
    hotspots: Sequence[Hotspot] = msgspec.field(default_factory=list)
    modules: Sequence[ModuleTime] = msgspec.field(default_factory=list)
    spans: Sequence[SpanTime] = msgspec.field(default_factory=list)
    startup: Startup | None = None
    trace: TraceFacts | None = None
    """Of a GPU trace: `unstall trace`, and `unstall run` where there is a device."""

    def with_run(self, **changes: Any) -> Report:
        """The same report with other facts about its run, e.g. ``with_run(notes=[...])``."""
        return msgspec.structs.replace(self, run=msgspec.structs.replace(self.run, **changes))

    def to_json(self) -> bytes:
        """The report as indented JSON that satisfies ``unstall/2``."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2)

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


def _current(report: Report) -> Report:
    """A report of version 1 as version 2 would have it: a run without a step has no verdict, and is not healthy."""
    if report.schema != "unstall/1" or report.run.steps:
        return report
    verdict = msgspec.structs.replace(report.verdict, pattern=NO_VERDICT)
    return msgspec.structs.replace(report, verdict=verdict, findings=[verdict])

"""What unstall says of several runs: the ledger's entries, and the answers of ``compare``, ``gate`` and ``next``.

Times are seconds, shares are 0..1, unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from unstall.records.speedup import Speedup
from unstall.records.vocabulary import PhaseName

Subject = Literal["machine", "software", "load", "settings", "command", "code"]
"""What a difference between two runs is about."""
Conclusion = Literal["faster", "slower", "no difference", "unknown"]
Answer = Literal["stop", "go on", "unknown"]


class Entry(msgspec.Struct, kw_only=True, frozen=True):
    """One run, a row of the ledger. ``started`` is UTC as in the report."""

    id: str
    kind: str
    project: str
    started: str
    host: str
    directory: str
    """The folder of its recording, on ``host``."""
    command: Sequence[str]
    revision: str | None = None
    changes: str | None = None
    """Stands for the uncommitted changes; None for a clean tree."""
    duration_s: float
    exit_code: int | None = None
    steps: int
    steps_per_s: float | None = None
    samples_per_s: float | None = None
    step_p50_s: float | None = None
    step_p95_s: float | None = None
    pattern: str
    cause: str | None = None
    culprit: str | None = None
    """``function file:line``."""
    headroom: float | None = None
    known_by: str | None = None
    confidence: str | None = None
    gap: float | None = None
    """1 - actual/ceiling, by the best ceiling known."""
    speedup: float | None = None
    """What the kept remedies of ``unstall optimize`` brought."""
    other_cores: float | None = None
    environment: Mapping[str, Any] = msgspec.field(default_factory=dict)

    @property
    def program(self) -> str:
        """The script or module without its arguments: what stays the same from one attempt to the next."""
        for before, word in zip(["", *self.command], self.command):
            if before == "-m" or word.endswith(".py"):
                return word
        return self.command[0] if self.command else ""

    @property
    def code(self) -> str:
        """Revision and changes in short: two runs of the same code have the same."""
        if self.revision is None:
            return "–"
        return self.revision[:8] + (f"+{self.changes[:4]}" if self.changes else "")


class ChangedFact(msgspec.Struct, frozen=True):
    """One fact that was not the same."""

    subject: Subject
    name: str
    a: str
    b: str


class Side(msgspec.Struct, kw_only=True, frozen=True):
    """One of the two runs that ``unstall compare`` looks at."""

    id: str
    started: str
    command: Sequence[str]
    steps: int
    steps_per_s: float | None
    samples_per_s: float | None
    p50_s: float | None
    p95_s: float | None
    verdict: str
    culprit: str | None
    headroom: float | None
    ceiling: Speedup | None = None
    """The verdict's ceiling, with its interval."""


class SpeedupInterval(msgspec.Struct, frozen=True):
    """A speed-up and its 95 % interval; the bounds are None where they are not known."""

    value: float
    low: float | None = None
    high: float | None = None


class PhaseChange(msgspec.Struct, kw_only=True, frozen=True):
    """Seconds a step in a phase, in A and in B."""

    name: PhaseName
    a_s: float
    b_s: float
    sure: bool | None
    """Whether the change is larger than the noise among the steps; None where there are too few to tell."""


class CallbackChange(msgspec.Struct, kw_only=True, frozen=True):
    """Seconds a step in an event of a callback, in A and in B."""

    name: str
    a_s: float
    b_s: float


class Comparison(msgspec.Struct, kw_only=True, frozen=True):
    """What ``unstall compare`` finds."""

    a: Side
    b: Side
    differences: Sequence[ChangedFact]
    conclusion: Conclusion
    speedup: SpeedupInterval | None
    smallest_detectable: float | None
    """The smallest speed-up that a comparison as noisy as this would have found four times out of five."""
    phases: Sequence[PhaseChange]
    caveats: Sequence[str]
    callbacks: Sequence[CallbackChange] = ()
    """Those that changed most first."""
    commits: str | None = None
    """What lies between the two revisions, where git knows both."""


class GatePair(msgspec.Struct, kw_only=True, frozen=True):
    """One comparison of the gate: seconds a step of either side, and the cores that others took meanwhile."""

    baseline_s: float
    candidate_s: float
    baseline_other_cores: float
    candidate_other_cores: float
    counts: bool
    """False for a pair that was set aside."""


class PhaseMedians(msgspec.Struct, frozen=True):
    """Seconds a step in a phase, the median over the runs that were compared."""

    name: PhaseName
    baseline_s: float
    candidate_s: float


class Slowdown(msgspec.Struct, frozen=True):
    """Candidate's step time over the baseline's. The bounds are one-sided: for the alarm and for the miss."""

    value: float
    low: float
    high: float


class GateResult(msgspec.Struct, kw_only=True, frozen=True):
    """What ``unstall gate`` answers."""

    decision: Literal["regression", "pass", "cannot tell"]
    allowance: float
    slowdown: Slowdown | None
    baseline: str
    candidate: str
    command: Sequence[str]
    pairs: Sequence[GatePair]
    phases: Sequence[PhaseMedians]
    duration_s: float
    notes: Sequence[str] = msgspec.field(default_factory=list)
    differences: Sequence[ChangedFact] = msgspec.field(default_factory=list)
    """What the programs were set to: samples a step, workers, dtype ..."""


class Iteration(msgspec.Struct, frozen=True):
    """One state of the code, the median speed of its runs, and its gain over the best before it."""

    code: str
    steps_per_s: float
    runs: int
    gain: float | None
    """None for the first."""


class BestRemedy(msgspec.Struct, frozen=True):
    """The best known remedy: what it is, the speed-up, how that is known."""

    what: str
    gain: float
    known_by: str
    is_ceiling: bool
    """Whether it is the speed-up if the culprit took no time, which no remedy quite brings."""
    interval: tuple[float, float] | None = None


class Savings(msgspec.Struct, frozen=True):
    """What the best known remedy would save every week, if the program goes on running as much."""

    hours_run: float
    hours_saved: float
    """0 where no remedy is known."""
    money_saved: float | None
    """Money saved, in the currency of the price; None without one."""
    hours_known_by: Literal["history", "given"] = "history"


class Stopping(msgspec.Struct, kw_only=True, frozen=True):
    """What ``unstall next`` answers."""

    answer: Answer
    why: Sequence[str]
    program: str
    steps_per_s: float | None
    bound: float | None
    """Amdahl's: how many times faster it could get at most."""
    iterations: Sequence[Iteration]
    expected_gain: float | None
    """Gain to expect of one more iteration, if gains go on shrinking as they did."""
    best: BestRemedy | None
    savings: Savings | None

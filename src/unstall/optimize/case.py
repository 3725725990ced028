"""What a remedy is given, what it answers, and what a remedy is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from unstall.optimize.program import Program
from unstall.optimize.sources import Sources
from unstall.records.measurements import Measurement
from unstall.records.report import Report

Area = Literal["compute", "communication", "memory"]
Exactness = Literal["exact", "close", "training-changing"]


@dataclass(frozen=True)
class Call:
    """A call in the user's source, as the running program saw it."""

    file: Path
    line: int
    function: str
    span: tuple[int, int, int, int] | None = None
    """(first line, last line, first column, end column), lines from 1, columns from 0 in bytes, as Python has them."""


@dataclass(frozen=True)
class Made:
    """A loader or an optimizer that the program made: where, and what it is."""

    call: Call | None
    facts: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.facts.get(name)


@dataclass(frozen=True)
class Probe:
    """What the program made while it ran."""

    loaders: tuple[Made, ...] = ()
    """Those that were iterated, in the order they were first iterated."""
    optimizers: tuple[Made, ...] = ()
    threads_set: tuple[Made, ...] = ()
    """Calls of torch.set_num_threads."""
    models: tuple[Made, ...] = ()
    """Calls of models from the program's code; ``callers`` are the program's frames above."""
    threads: int | None = None
    """Threads of torch's operators when it was imported."""


@dataclass(frozen=True)
class Case:
    """The program as it now is, and what was found out about it."""

    program: Program
    report: Report
    measurement: Measurement
    sources: Sources
    probe: Probe
    cores: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Set at run time so far."""

    def share(self, *phases: Any) -> float:
        """Share of the step in these phases."""
        return min(1.0, self.measurement.share(*phases))

    def user_file(self, name: str | Path | None) -> Path | None:
        """The path, when it is a source file of the user's that may be changed."""
        if not name:
            return None
        path = Path(name)
        path = path if path.is_absolute() else Path.cwd() / path
        return path if self.program.owns(path) else None


@dataclass(frozen=True)
class Proposal:
    """One change worth a trial."""

    remedy: str
    title: str
    """What is changed, for a person: ``num_workers=2 in train.py:152``."""
    exactness: Exactness
    predicted: float
    """Predicted speed-up of the step, 1 when it cannot be told but may help."""
    because: str
    """What the prediction rests on."""
    sources: Sources | None = None
    """The sources with the change in them; None when it cannot be written."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """For the child side, when it is not written into the source."""
    runtime: Mapping[str, Any] = field(default_factory=dict)
    """The same as settings of the child side, where ``sources`` has it written."""
    not_written: str | None = None
    """Why it is not written into the source, if it is not."""
    advice: bool = False
    """Only to be told: it is never tried."""
    needs_revisits: bool = False
    """Pays only when samples are met again, from the second epoch on."""
    remembers: tuple[str, ...] = ()
    """``file:function`` of what is remembered: the comparison checks that it is asked only plain values."""
    in_batches: bool = False
    """Calls of a model are made together: its rows are counted, and the comparison makes each call alone as well."""
    arithmetic: str = ""
    """The coarsest data type it computes in, where that is not to be seen of its results: ``bfloat16``, ``tf32``."""
    key: str = ""
    """Distinguishes the options of one remedy, and what was tried already."""

    @property
    def id(self) -> tuple[str, str]:
        """The same change is not tried twice under the same conditions."""
        return self.remedy, self.key or self.title


@dataclass(frozen=True)
class Unfit:
    """Why a remedy does not apply."""

    reason: str


class Remedy(Protocol):
    """A module of :mod:`unstall.optimize.remedies`: one kind of change."""

    NAME: str
    AREA: Area
    EXACTNESS: Exactness

    def propose(self, case: Case) -> list[Proposal] | Unfit:
        """The changes of this kind that are worth a trial now, or why there are none."""
        ...


def predicted_without(share: float, removed: float = 1.0) -> float:
    """Speed-up when ``removed`` of a ``share`` of the step goes away (Amdahl, on the main thread's critical path)."""
    left = 1 - min(0.99, max(0.0, share)) * removed
    return 1 / max(left, 0.01)

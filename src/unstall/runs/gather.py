"""``unstall run --gather``: each machine leaves its part of a run in one place, and one of them makes the report.

That is the machine with rank 0. The others leave once they see its part; where it does not come in time, the machine
with the lowest rank of those that came stands in for it.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unstall.benchmark.gather import store as stores
from unstall.benchmark.gather.store import Store, StoreError
from unstall.runs.errors import refusing

if TYPE_CHECKING:
    from unstall.diagnose.run_report import DiagnosedRun
    from unstall.records.observations import StackSample
    from unstall.records.part import Part

REPORT_NAME = "report.json"
_LOOK_EVERY_S = 0.5
_MOST_STACKS = 8
"""Parts whose stacks are read: those of the latest ranks, for their culprit."""


@dataclass(frozen=True)
class Gathered:
    """What became of a machine's part."""

    diagnosis: DiagnosedRun
    """The run of all machines that came, or of this one where another makes the report."""
    elsewhere: str | None = None
    """Where another machine puts the report."""
    report_name: str | None = None
    """What this machine's report is called in the store, for the others."""


@dataclass(frozen=True)
class Gathering:
    """A place where the machines of a run leave their parts."""

    store: Store
    since: float | None
    """The store's time when this machine began: a part from before is another run's."""
    wait_s: float
    """How long to wait for the other machines once this one has ended."""
    on_message: Callable[[str], None]
    token: str = field(default_factory=lambda: secrets.token_hex(4))

    def gather(self, diagnosis: DiagnosedRun) -> Gathered:
        """Leave this machine's part, and make the report of all if that is for this machine to do."""
        from unstall.benchmark.gather import parts

        measured = diagnosis.measured
        own = parts.make(measured, diagnosis.run.exit_code) if measured is not None else None
        if measured is None or own is None:
            return Gathered(diagnosis.noting("nothing to gather: no rank of several was recorded on this machine"))
        try:
            name = parts.publish(self.store, own, measured.measurement.samples, self.token)
            arrivals = _Arrivals(self, own, name)
            arrivals.wait()
        except StoreError as error:
            return Gathered(diagnosis.noting(f"the machines' parts could not be put together: {error}"))
        report_name = f"{arrivals.folder}/{REPORT_NAME}"
        if not arrivals.is_first:
            return Gathered(diagnosis, elsewhere=self.store.address(report_name))
        return Gathered(arrivals.merged(diagnosis), report_name=report_name)

    def put_report(self, name: str, report: bytes) -> None:
        """Leave the report for the other machines; one that cannot be left is only said to be missing there."""
        try:
            self.store.write(name, report)
        except StoreError as error:
            self.on_message(f"the report is not where the other machines look for it: {error}")


class _Arrivals:
    """The parts of a run as they come."""

    def __init__(self, gathering: Gathering, own: Part, name: str):
        from unstall.benchmark.gather import parts

        self.gathering, self.own, self.name = gathering, own, name
        self.folder = parts.folder(own)
        self.parts: dict[str, Part] = {name: own}
        self.problems: dict[str, str] = {}

    @property
    def is_first(self) -> bool:
        """Whether this machine has the lowest rank of all that came."""
        return min(self.parts) == self.name

    @property
    def ranks(self) -> set[int]:
        """Those that came."""
        return {rank for part in self.parts.values() for rank in part.numbers}

    @property
    def missing(self) -> int:
        """How many ranks have not come."""
        return self.own.world_size - len(self.ranks)

    def wait(self) -> None:
        """Until all ranks are there, until rank 0's are and are not this machine's, or until the time is over."""
        self.look()
        if self.missing and not self._has_rank_0_elsewhere() and self.gathering.wait_s:
            self.gathering.on_message(
                f"waiting up to {self.gathering.wait_s:.0f} s for {self.missing} of {self.own.world_size} ranks "
                f"on other machines ({self.gathering.store.address(self.folder)})"
            )
        deadline = time.monotonic() + self.gathering.wait_s
        with contextlib.suppress(KeyboardInterrupt):  # a person need not wait for the others
            while self.missing and not self._has_rank_0_elsewhere() and time.monotonic() < deadline:
                time.sleep(_LOOK_EVERY_S)
                self.look()

    def look(self) -> None:
        """Read the parts that are new. One that cannot be read may be on its way: it is tried again."""
        from unstall.benchmark.gather import parts

        store = self.gathering.store
        for name in parts.names(store, self.folder, self.gathering.since):
            if name in self.parts:
                continue
            try:
                part = parts.read(store, self.folder, name)
            except StoreError as error:
                self.problems[name] = str(error)
                continue
            if not part.is_of(self.own):
                self.problems[name] = f"{name} is of another run"
            elif not self.ranks.isdisjoint(part.numbers):
                self.problems[name] = f"{name} has ranks that another machine recorded too: it is left out"
            else:
                self.parts[name] = part
                self.problems.pop(name, None)

    def merged(self, diagnosis: DiagnosedRun) -> DiagnosedRun:
        """The run judged by all parts that came, with the stacks of the ranks that are late."""
        from unstall.benchmark.gather import parts
        from unstall.benchmark.gather.merge import merge
        from unstall.diagnose.ranks import late_ranks, own_s

        assert diagnosis.measured is not None
        names = [self.name, *sorted(set(self.parts) - {self.name})]
        merged = merge(diagnosis.measured.measurement, [self.parts[name] for name in names])
        ranks = merged.measurement.ranks
        slow = late_ranks(ranks) or [max(ranks, key=own_s)]
        wanted = dict.fromkeys(merged.of_rank(rank.rank) for rank in slow)
        stacks: dict[int, Sequence[StackSample]] = {}
        for index in [index for index in wanted if index][:_MOST_STACKS]:
            name = names[index]
            try:
                stacks[index] = parts.read_stacks(self.gathering.store, self.folder, name)
            except StoreError as error:
                self.problems[name] = f"no stacks of {self.parts[name].host}: {error}"
        return diagnosis.of(merged.with_stacks(stacks), list(self.problems.values()))

    def _has_rank_0_elsewhere(self) -> bool:
        return any(0 in part.numbers for name, part in self.parts.items() if name != self.name)


def open_gathering(address: str, wait_s: float, on_message: Callable[[str], None]) -> Gathering:
    """See that the place takes files, before the program runs. Raises Refused where it does not, and ImportError."""
    with refusing(StoreError):
        store = stores.open_store(address)
        return Gathering(store, stores.now(store), wait_s, on_message)

"""From the parts of all machines to one Measurement: that of the machine which makes the report, with every rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from unstall.benchmark.gather.clocks import SAME, MachineClock
from unstall.benchmark.gather.clocks import between as clocks_between
from unstall.benchmark.thresholds import MOST_OF
from unstall.records.communication import NodeCommunication
from unstall.records.measurements import Measurement, RankMeasurement
from unstall.records.observations import StackSample
from unstall.records.part import Part, RankPart

_PIDS = 1 << 22
"""Linux has no higher process id, so each machine's get a range of their own."""


@dataclass(frozen=True)
class Merged:
    """The ranks of all parts, before their stacks are read."""

    measurement: Measurement
    parts: Sequence[Part]
    """The machine's own first."""

    def of_rank(self, number: int) -> int:
        """The part that a rank is in."""
        return next(index for index, part in enumerate(self.parts) if number in part.numbers)

    def with_stacks(self, stacks: dict[int, Sequence[StackSample]]) -> Measurement:
        """The measurement with the stacks of some parts, given by their index."""
        moved = [
            msgspec.structs.replace(sample, pid=_pid(sample.pid, index))
            for index, samples in stacks.items()
            for sample in samples
        ]
        return msgspec.structs.replace(self.measurement, samples=[*self.measurement.samples, *moved])


def merge(own: Measurement, parts: Sequence[Part]) -> Merged:
    """Put the ranks of all parts together. ``parts``: this machine's first; no two with a rank in common."""
    reference = min(parts[0].ranks, key=lambda rank: rank.measurement.rank)
    timed = [_timed(part, reference) for part in parts[1:]]
    clocks = [SAME, *(known[1] if known else None for known in timed)]
    kinds = Counter([known[0] for known in timed if known] or [exchanges.kind for exchanges in reference.exchanges[:1]])
    last = _arrives_last(parts, clocks, kinds.most_common(1)[0][0]) if kinds else {}
    ranks = [
        _moved(rank.measurement, index, last.get(rank.measurement.rank))
        for index, part in enumerate(parts)
        for rank in part.ranks
    ]
    present = {rank.rank for rank in ranks}
    measurement = msgspec.structs.replace(
        own,
        ranks=sorted(ranks, key=lambda rank: rank.rank),
        unseen_ranks=[rank for rank in range(own.world_size) if rank not in present],
        rank_pids=frozenset(rank.pid for rank in ranks),
        worker_pids=own.worker_pids.union(*(rank.worker_pids for rank in ranks)),
        nodes=[_node(part, clock) for part, clock in zip(parts, clocks)],
    )
    return Merged(measurement, parts)


def _timed(part: Part, reference: RankPart) -> tuple[str, MachineClock] | None:
    """A machine's clock against the reference rank's, by the rank of its own that fits best, and the kind of call."""
    longest = max(rank.measurement.steps for rank in part.ranks)
    lasting = [rank for rank in part.ranks if rank.measurement.steps >= MOST_OF * longest]
    clocks = [timed for rank in lasting if (timed := clocks_between(reference, rank)) is not None]
    return min(clocks, key=lambda item: item[1].error_s, default=None)


def _node(part: Part, clock: MachineClock | None) -> NodeCommunication:
    return NodeCommunication(
        host=part.host,
        ranks=sorted(part.numbers),
        clock_offset_s=clock.offset_s if clock else None,
        clock_drift=clock.drift if clock else 0.0,
        clock_error_s=clock.error_s if clock else None,
        exit_code=part.exit_code,
        restarts=max(rank.restarts for rank in part.ranks),
    )


def _moved(rank: RankMeasurement, index: int, last: float | None) -> RankMeasurement:
    pids = frozenset(_pid(pid, index) for pid in rank.worker_pids)
    return msgspec.structs.replace(rank, pid=_pid(rank.pid, index), worker_pids=pids, arrives_last=last)


def _pid(pid: int, index: int) -> int:
    return pid % _PIDS + index * _PIDS


def _arrives_last(parts: Sequence[Part], clocks: Sequence[MachineClock | None], kind: str) -> dict[int, float]:
    """Of each rank whose clock is known, the share of the calls of a kind at which it came last."""
    rows = [
        (rank.measurement.rank, clock, exchanges)
        for part, clock in zip(parts, clocks)
        for rank in part.ranks
        for exchanges in rank.exchanges
        if clock is not None and exchanges.kind == kind
    ]
    longest = max((exchanges.covered for _, _, exchanges in rows), default=0)
    rows = [row for row in rows if row[2].covered >= MOST_OF * longest]
    if len(rows) < 2:
        return {}
    stride = max(exchanges.stride for _, _, exchanges in rows)
    arrivals = [clock.aligned(exchanges.starts[:: stride // exchanges.stride]) for _, clock, exchanges in rows]
    count = min(map(len, arrivals))
    latest = np.argmax([arrival[:count] for arrival in arrivals], axis=0)
    shares = np.bincount(latest, minlength=len(rows)) / max(count, 1)
    return {rank: float(share) for (rank, _, _), share in zip(rows, shares)}

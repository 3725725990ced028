"""Who waits for whom in a run with several ranks, in a report."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class GroupCommunication(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """What a rank spent in the collectives of one process group; a step's."""

    name: str
    """A mesh's dimension, "default" for the group of all ranks, or as the program describes it."""
    exposed_s: float
    """Seconds in the calls and in waiting for them, while nothing else is done."""
    hidden_s: float | None = None
    """Seconds of the exchange inside backward while backward computed; None where that is not known."""
    calls_per_step: float | None = None
    """None where they are made in C++ and not known; of what is exchanged inside backward, the buckets."""
    bytes_per_step: float | None = None
    """Bytes a step: the larger of what goes in and what comes out; pickled objects are not counted."""
    ranks: Sequence[int] = msgspec.field(default_factory=list)
    """The members of the group; empty where they are not known."""
    device: str = ""


class RankCommunication(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """One rank of a run: where it ran, how long it worked in a step, and how long it waited."""

    rank: int
    step_s: float
    own_s: float
    """Without what it waits for the others."""
    exposed_s: float
    """Seconds in collectives, and blocked inside backward and the optimizer."""
    host: str = ""
    local_rank: int | None = None
    groups: Sequence[GroupCommunication] = msgspec.field(default_factory=list)
    arrives_last: float | None = None
    """Share of the exchanges with all ranks at which it came last, clocks aligned."""


class NodeCommunication(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """One `unstall run --gather` of several: a machine, as a rule."""

    host: str
    ranks: Sequence[int]
    clock_offset_s: float | None = None
    """The node's clock less the first node's, in the middle of the run; None where no exchange of both was recorded."""
    clock_drift: float = 0.0
    """How the offset grows: seconds a second."""
    clock_error_s: float | None = None
    """Median distance of the exchanges' ends from each other, clocks aligned."""
    exit_code: int | None = None
    restarts: int = 0
    """Earlier lives of its ranks, in which torchrun or the program itself had started them."""


class Communication(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """The ranks of a distributed run, and who waits for whom."""

    ranks: Sequence[RankCommunication]
    """Those that were seen."""
    unseen: Sequence[int] = msgspec.field(default_factory=list)
    """The others of the same world: on another node, as a rule. Which rank is late is not known then."""
    waits_least: int | None = None
    """The rank, of those that were seen, that all others wait for, where ``skew_s`` is worth a word."""
    skew_s: float | None = None
    """Between the longest and the shortest wait of a rank, seconds a step."""
    efficiency: float | None = None
    """Scaling efficiency against one rank, estimated: N ranks do N times this of what one would do in the same time."""
    late: Sequence[int] = msgspec.field(default_factory=list)
    """The ranks that work longer than the others by more than chance, the latest first."""
    nodes: Sequence[NodeCommunication] = msgspec.field(default_factory=list)
    """The machines whose parts were put together, with ``--gather``."""

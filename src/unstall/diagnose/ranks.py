"""What the ranks of a distributed step did themselves, and what they waited for each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median_low

from unstall.diagnose.thresholds import (
    BLOCKED,
    ENDED_EARLY,
    LATE_LEAST,
    LATE_SCATTER,
    NOTABLE_EXCHANGE,
    UNRECORDED_WAIT,
)
from unstall.records.communication import Communication, GroupCommunication, NodeCommunication, RankCommunication
from unstall.records.measurements import Measurement, RankMeasurement
from unstall.records.vocabulary import BACKWARD, COMM, FORWARD, OPTIMIZER
from unstall.text.units import percent

INSIDE_BACKWARD = "in backward"
"""Stands for a group's name: what DDP exchanges in backward or in the optimizer is called by no Python."""


def exposed_s(rank: RankMeasurement) -> float:
    """Seconds a step that a rank waits for others: its own collectives, and blocked time inside backward.

    Gradient exchange of DDP happens in backward, on other threads; what it cannot hide blocks the main thread.
    """
    return rank.phases.get(COMM.name, 0.0) + _blocked_in_model_s(rank)


def _blocked_in_model_s(rank: RankMeasurement) -> float:
    return rank.blocked.get(BACKWARD.name, 0.0) + rank.blocked.get(OPTIMIZER.name, 0.0)


def own_s(rank: RankMeasurement) -> float:
    """Seconds a step that a rank needs without waiting."""
    return max(0.0, rank.step_s - exposed_s(rank))


def spread(ranks: Sequence[RankMeasurement]) -> float:
    """Difference between the longest and the shortest wait: none when all wait for the network alike."""
    waits = [exposed_s(rank) for rank in ranks]
    return max(waits) - min(waits)


def efficiency(ranks: Sequence[RankMeasurement]) -> float:
    """Scaling efficiency against one rank, estimated: the mean share of a step that a rank works itself.

    A rank alone waits for nobody, and would take its own work's time. Where ranks share cores it would take less, so
    that the true efficiency is lower; `unstall simplify` measures one rank alone.
    """
    return sum(own_s(rank) / rank.step_s for rank in ranks) / len(ranks)


def late_ranks(ranks: Sequence[RankMeasurement]) -> list[RankMeasurement]:
    """The ranks that work longer than the others by more than chance, the latest first; never more than half of them.

    Chance is measured by the distances from the median, which a few late ranks do not move. The lower median, so that
    of two ranks the slower can be late.
    """
    own = [own_s(rank) for rank in ranks]
    if len(own) < 2:
        return []
    typical = median_low(own)
    scatter = median_low(abs(work - typical) for work in own)
    step_s = max(rank.step_s for rank in ranks)
    limit = typical + max(LATE_SCATTER * scatter, LATE_LEAST * step_s)
    late = [rank for rank, work in zip(ranks, own) if work > limit]
    return sorted(late, key=own_s, reverse=True)


def communication(measurement: Measurement) -> Communication | None:
    """The ranks as the report has them; None for a program that has no peers."""
    if not measurement.has_peers:
        return None
    ranks = measurement.ranks
    return Communication(
        ranks=[_communication_of(rank) for rank in ranks],
        unseen=list(measurement.unseen_ranks),
        waits_least=min(ranks, key=exposed_s).rank if len(ranks) > 1 else None,
        skew_s=spread(ranks) if len(ranks) > 1 else None,
        efficiency=efficiency(ranks) if len(ranks) > 1 else None,
        late=[rank.rank for rank in late_ranks(ranks)],
        nodes=list(measurement.nodes),
    )


def _communication_of(rank: RankMeasurement) -> RankCommunication:
    groups = [
        GroupCommunication(
            name=group.name,
            ranks=list(group.ranks),
            device=group.device,
            exposed_s=group.wait_s,
            calls_per_step=group.calls,
            bytes_per_step=group.bytes,
        )
        for group in rank.groups
    ]
    in_model_s, exchange = _blocked_in_model_s(rank), rank.exchange
    if exchange is not None:
        groups.append(
            GroupCommunication(
                name=INSIDE_BACKWARD,
                exposed_s=in_model_s,
                hidden_s=exchange.hidden_s,
                calls_per_step=len(exchange.buckets) or None,
                bytes_per_step=sum(exchange.buckets) or None,
            )
        )
    elif in_model_s > NOTABLE_EXCHANGE * rank.step_s:
        groups.append(GroupCommunication(name=INSIDE_BACKWARD, exposed_s=in_model_s))
    return RankCommunication(
        rank=rank.rank,
        host=rank.host,
        local_rank=rank.local_rank,
        step_s=rank.step_s,
        own_s=own_s(rank),
        exposed_s=exposed_s(rank),
        groups=groups,
        arrives_last=rank.arrives_last,
    )


def unseen(measurement: Measurement) -> str:
    """The ranks that were not seen, as "rank 1 of 2" or "ranks 8-15 of 16"; empty where all were."""
    if not measurement.unseen_ranks:
        return ""
    return f"{named(measurement.unseen_ranks)} of {measurement.world_size}"


def named(numbers: Iterable[int]) -> str:
    """Ranks as "rank 1" or "ranks 0-3, 8"."""
    ranks = sorted(numbers)
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    words = ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs[:4])
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {words}{', …' if len(runs) > 4 else ''}"


def waits_unrecorded(measurement: Measurement) -> bool:
    """Whether forward is blocked in a program of several ranks none of whose collectives was recorded.

    So it is with a library, or a version of torch, whose collectives the seams do not know.
    """
    forward = measurement.phase(FORWARD.name)
    if not measurement.has_peers or forward is None or any(rank.groups for rank in measurement.ranks):
        return False
    least = max(BLOCKED * forward.mean_s, UNRECORDED_WAIT * measurement.step.mean)
    return forward.blocked_s > least


def notes(measurement: Measurement) -> list[str]:
    """What is not known of the ranks, one line each."""
    lines = []
    if measurement.unseen_ranks:
        lines.append(f"{unseen(measurement)} not seen by this run: what waits in collectives may wait for a rank there")
    most = max((rank.steps for rank in measurement.ranks), default=0)
    early = [rank.rank for rank in measurement.ranks if rank.steps < ENDED_EARLY * most]
    if early:
        lines.append(f"{named(early)} ended early: the others made up to {most:,} steps")
    for node in measurement.nodes:
        lines += _node_notes(node)
    if waits_unrecorded(measurement):
        forward = measurement.phase(FORWARD.name)
        assert forward is not None
        lines.append(
            f"forward is blocked for {percent(forward.blocked_s / forward.mean_s)} of its time and no collective was "
            "recorded: it may wait for other ranks in calls that unstall does not know"
        )
    return lines


def _node_notes(node: NodeCommunication) -> list[str]:
    lines = []
    if node.exit_code:
        ended = f"by signal {-node.exit_code}" if node.exit_code < 0 else f"with exit code {node.exit_code}"
        lines.append(f"the program on {node.host} ({named(node.ranks)}) ended {ended}")
    if node.restarts:
        lines.append(f"a rank on {node.host} ({named(node.ranks)}) was started again: its longest life is measured")
    if node.clock_offset_s is None:
        lines.append(f"the clock of {node.host} could not be aligned: no exchange of all ranks was recorded there")
    return lines

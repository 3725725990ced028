"""The ranks of a distributed program: which processes they are, and what each spends its steps on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unstall.benchmark import steadystate
from unstall.benchmark.exchange import gradient_exchange
from unstall.benchmark.phases import mean_phases
from unstall.benchmark.reader import ProcessRecording, ends, starts
from unstall.benchmark.steps import Bools, Loop, extent_s, main_spans
from unstall.child.seams.collectives import COLLECTIVE, FUNCTIONAL, GROUP_SHIFT, WAIT
from unstall.child.seams.loader import FETCH
from unstall.records.measurements import GroupMeasurement, RankMeasurement
from unstall.records.vocabulary import TRAINING

Loops = Mapping[int, Loop | None]
"""The main loop of each process."""

_WHOLE_WORLD = ("default_pg", "mesh_default")
_UNNAMED = ("", "undefined")


def is_helper(process: ProcessRecording, others: Sequence[ProcessRecording], loops: Loops) -> bool:
    """Whether it serves the process that started it, as loader workers and environments do.

    A rank may be started by another one; it then joined a process group, or its launcher called it another rank. Nor
    does one of a pool serve that trains for longer than what started it: a search that fits the winner once more.
    """
    parent = next((other for other in others if other.pid == process.parent and other is not process), None)
    if parent is None or (process.identity is not None and process.identity.joined):
        return False
    if process.identity is not None:
        return _place(process) == _place(parent)
    loop = loops[process.pid]
    trains = loop is not None and loop.kind in TRAINING
    return not trains or extent_s(loop) <= extent_s(loops[parent.pid])


def _place(process: ProcessRecording) -> tuple[int, int]:
    return (process.identity.rank, process.identity.world_size) if process.identity is not None else (0, 1)


def find_main(looping: Sequence[ProcessRecording], loops: Loops) -> ProcessRecording:
    """The process that stands for the program: its first rank, or the one whose loop takes the longest."""
    return min(
        looping,
        key=lambda process: (
            process.identity is None or not process.identity.joined,
            process.rank,
            -extent_s(loops[process.pid]),
        ),
    )


def computing(main: ProcessRecording, loop: Loop, looping: Sequence[ProcessRecording]) -> int:
    """How many processes of the main one's machine run a model or an optimizer for most of the time of its loop."""
    begin, end = float(loop.starts[0]), float(loop.ends[-1])
    here = (process for process in looping if _host(process) == _host(main))
    spans = (process.spans[np.isin(process.spans["name"], process.driving)] for process in here)
    common = (min(end, ends(own).max()) - max(begin, starts(own).min()) for own in spans if len(own))
    return sum(bool(seconds > (end - begin) / 2) for seconds in common)


def _host(process: ProcessRecording) -> str:
    return str((process.first("process") or {}).get("host", ""))


def of_world(main: ProcessRecording, looping: Sequence[ProcessRecording], loops: Loops) -> list[ProcessRecording]:
    """The ranks of the main process's world, in order, each once; none where it has no peers."""
    if main.identity is None or main.identity.world_size < 2:
        return []
    longest: dict[int, ProcessRecording] = {}
    for process in sorted(looping, key=lambda process: extent_s(loops[process.pid])):
        identity = process.identity
        if identity is not None and identity.is_peer_of(main.identity):
            longest[identity.rank] = process
    return [longest[rank] for rank in sorted(longest)]


def measure(
    ranks: Sequence[ProcessRecording],
    loops: Loops,
    held_up: Mapping[int, list[tuple[float, float]]],
    sampled: Mapping[int, list[tuple[float, float]]],
    processes: Sequence[ProcessRecording],
) -> list[RankMeasurement]:
    """Each rank over its own measured steps.

    Args:
        ranks: the processes, one a rank.
        loops: of each process, by pid.
        held_up: of each process, when unstall held it up.
        sampled: of each process, when its stacks were sampled.
        processes: all of them, with workers.
    """
    measured = []
    for process in ranks:
        loop, identity = loops[process.pid], process.identity
        assert loop is not None and identity is not None
        chosen, _, _ = steadystate.measured(loop.starts, loop.ends, held_up[process.pid], sampled[process.pid])
        if not chosen.any():
            continue
        phases = mean_phases(loop, chosen)
        measured.append(
            RankMeasurement(
                rank=identity.rank,
                pid=process.pid,
                step_s=float(loop.durations[chosen].mean()),
                phases={phase.name: phase.mean_s for phase in phases},
                blocked={phase.name: phase.blocked_s for phase in phases},
                worker_pids=workers(process.pid, processes),
                host=identity.host,
                local_rank=identity.local_rank,
                groups=_groups(process, loop, chosen),
                exchange=gradient_exchange(process.facts.get("ddp", [])),
                steps=len(loop),
            )
        )
    return measured


def workers(pid: int, processes: Sequence[ProcessRecording]) -> frozenset[int]:
    """The loader workers of a process."""
    return frozenset(process.pid for process in processes if process.parent == pid and FETCH.event in process.ids)


def unseen(main: ProcessRecording, measured: Sequence[RankMeasurement]) -> tuple[int, ...]:
    """The ranks that the main process shares a process group with, and that were not measured."""
    if main.identity is None or not main.identity.joined:
        return ()
    measured_ranks = {rank.rank for rank in measured}
    return tuple(rank for rank in range(main.identity.world_size) if rank not in measured_ranks)


def _groups(process: ProcessRecording, loop: Loop, chosen: Bools) -> list[GroupMeasurement]:
    """The collectives that the main thread called in the measured steps, by process group."""
    spans = main_spans(process)
    spans = spans[np.isin(spans["name"], process.of(COLLECTIVE))]
    step = loop.step_of(spans)
    spans = spans[(step >= 0) & chosen[step]]
    facts = {int(fact["number"]): fact for fact in process.facts.get("group", [])}
    begins = spans["name"] != process.ids.get(COLLECTIVE.named(WAIT), -1)
    numbers = spans["arg"] >> GROUP_SHIFT
    functional = spans["name"] == process.ids.get(COLLECTIVE.named(FUNCTIONAL), -1)
    steps, groups = int(chosen.sum()), []
    for number in np.unique(numbers):
        of_group = numbers == number
        moved = spans["arg"][of_group & begins] & ((1 << GROUP_SHIFT) - 1)
        fact = facts.get(int(number), {})
        groups.append(
            GroupMeasurement(
                name=_name(fact) or ("DTensor" if functional[of_group].any() else "unknown"),
                ranks=tuple(int(rank) for rank in fact.get("ranks", [])),
                device=str(fact.get("device", "")),
                calls=float((of_group & begins).sum()) / steps,
                bytes=float(moved.sum()) / steps,
                wait_s=float(spans["dur"][of_group].sum()) / 1e9 / steps,
            )
        )
    return sorted(groups, key=lambda group: -group.wait_s)


def _name(fact: Mapping[str, object]) -> str:
    """As its maker described it: a mesh's dimension ("dp"), or "default"; else the number that torch gave it."""
    description = str(fact.get("description", ""))
    if description in _WHOLE_WORLD:
        return "default"
    return str(fact.get("name", "")) if description in _UNNAMED else description.removeprefix("mesh_")

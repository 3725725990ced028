"""Read what the processes of a run recorded: span records into NumPy arrays, and the facts beside them.

Everything is on the machine's monotonic clock, so the files of all processes fit together as they are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from unstall.child import layout
from unstall.child.layout import HEADER_BYTES, MAIN, MODULE
from unstall.child.seams import built_in
from unstall.records import vocabulary
from unstall.records.vocabulary import Phase, PhaseName, Plugins, Seam, Tick, seam_of


def _dtype(fields: layout.Fields) -> np.dtype[np.void]:
    """The same fields as NumPy has them."""
    columns = []
    for name, code in fields:
        count, kind = code[:-1], code[-1]
        columns.append((name, f"S{count}") if kind == "s" else (name, f"<{kind}", (int(count),) if count else ()))
    return np.dtype(columns)


RECORD, HEADER = _dtype(layout.RECORD_FIELDS), _dtype(layout.HEADER_FIELDS)

NO_PHASE = -1
"""Stands for a phase's index: time that no seam claims."""
_ATTEMPTS = 5  # to read a file that is being written to

Spans = npt.NDArray[np.void]


@dataclass(frozen=True)
class RankIdentity:
    """Which rank of how many a process is, and where it runs."""

    rank: int
    world_size: int
    local_rank: int | None = None
    host: str = ""
    joined: bool = False
    """It made a process group with the others; else only a launcher called it so."""
    job: str = ""
    """The run's name on every node; empty where no launcher gave one."""
    restart: int = 0
    """How often the launcher had started all ranks anew."""

    def is_peer_of(self, other: RankIdentity) -> bool:
        """Whether both are ranks of one world."""
        return (self.world_size, self.joined, self.restart) == (other.world_size, other.joined, other.restart)


@dataclass(frozen=True)
class ProcessRecording:
    """What one process recorded, spans sorted by start (an enclosing span before those inside it)."""

    pid: int
    parent: int
    spans: Spans
    names: dict[int, str] = field(default_factory=dict)
    facts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The info lines by their kind."""
    dropped: int = 0
    refetch_s: float | None = None
    """What a line of memory costs a step after it was last touched: the median; None where the steps are too short."""

    @cached_property
    def ids(self) -> dict[str, int]:
        """The numbers of the names."""
        return {name: number for number, name in self.names.items()}

    @cached_property
    def plugins(self) -> Plugins:
        """What the process said of the phases and seams that plug-ins added to it."""
        phases = tuple(msgspec.convert(fact["phase"], Phase) for fact in self.facts.get("phase", []))
        return Plugins(phases, tuple(msgspec.convert(fact["seam"], Seam) for fact in self.facts.get("seam", [])))

    @cached_property
    def seams(self) -> dict[int, Seam]:
        """The seams by the numbers of their names."""
        known = built_in() + self.plugins.seams
        return {number: seam for number, name in self.names.items() if (seam := seam_of(name, known))}

    @cached_property
    def phase_names(self) -> tuple[PhaseName, ...]:
        """The built-in phases, then those of plug-ins."""
        return tuple(phase.name for phase in self.plugins.all_phases)

    def of(self, seam: Seam) -> list[int]:
        """The numbers of the names that a seam's spans have."""
        return [number for number, name in self.names.items() if seam.covers(name)]

    def counting(self, kind: Tick) -> list[int]:
        """The numbers of the names of the seams that count as this kind."""
        return [number for number, seam in self.seams.items() if seam.counts == kind]

    @cached_property
    def driving(self) -> list[int]:
        """The numbers of the names of the seams whose calls mark what runs a loop."""
        return [number for number, seam in self.seams.items() if seam.drives_loop]

    def named(self, name: str, *, main_only: bool = True) -> Spans:
        """The spans of one name, calls of submodules left out."""
        wanted = (self.spans["name"] == self.ids.get(name, -1)) & (self.spans["flags"] & MODULE == 0)
        if main_only:
            wanted &= self.spans["flags"] & MAIN != 0
        return self.spans[wanted]

    def first(self, kind: str) -> dict[str, Any] | None:
        lines = self.facts.get(kind)
        return lines[0] if lines else None

    @cached_property
    def identity(self) -> RankIdentity | None:
        """Which rank it is: as the process group says that it joined, else as its launcher's variables do."""
        process = self.first("process") or {}
        joined = [fact for fact in self.facts.get("rank", []) if int(fact["world_size"]) > 1]
        fact = {**process, **joined[-1]} if joined else process
        if "rank" not in fact:
            return None
        local = fact.get("local_rank")
        return RankIdentity(
            rank=int(fact["rank"]),
            world_size=int(fact.get("world_size", 1)),
            local_rank=int(local) if local is not None else None,
            host=str(fact.get("host", "")),
            joined=bool(joined),
            job=str(fact.get("job", "")),
            restart=int(fact.get("restart", 0)),
        )

    @property
    def rank(self) -> int:
        """The number among the ranks; 0 for a process that is none of several."""
        return self.identity.rank if self.identity is not None else 0

    def own_phases(self, spans: Spans) -> npt.NDArray[np.int64]:
        """For each span the index in ``phase_names`` of its seam's phase, ``NO_PHASE`` where that has none."""
        table = np.full(1 << 16, NO_PHASE)
        for number, seam in self.seams.items():
            if seam.phase is not None:
                table[number] = self.phase_names.index(seam.phase)
        return table[spans["name"]]

    def phase_indices(self, spans: Spans) -> npt.NDArray[np.int64]:
        """For each span the index in ``phase_names`` its own time counts towards, inherited from what encloses it.

        ``spans`` are those of one thread, sorted. A span of no phase of its own (a user's span, a garbage
        collection, a socket call) belongs to the phase it happens in, or to none: ``NO_PHASE``; so does a module
        that a transform, an environment, a callback or a recomputing backward calls, and the environment in which a
        callback evaluates the policy.
        """
        phases = self.own_phases(spans)
        modules = np.isin(spans["name"], self.counting(Tick.FORWARD))
        environments = np.isin(spans["name"], self.counting(Tick.ENV))
        callback = self.phase_names.index(vocabulary.CALLBACK.name)
        every = enumerate(self.plugins.all_phases)
        holders = [number for number, phase in every if phase.serves or phase == vocabulary.BACKWARD]
        index = np.arange(len(spans))
        depth = spans["depth"]
        ends = spans["start"] + spans["dur"]
        for level in range(1, int(depth.max(initial=0)) + 1):
            above = np.maximum.accumulate(np.where(depth == level - 1, index, -1))
            inside = (depth == level) & (above >= 0)
            inside[inside] = ends[above[inside]] >= spans["start"][inside]
            # A module called by a transform, an environment or a recomputing backward is part of that.
            guest = inside & modules
            guest[guest] = np.isin(phases[above[guest]], holders)
            guest |= inside & environments & (phases[above] == callback)
            heir = inside & (phases == NO_PHASE) | guest
            phases[heir] = phases[above[heir]]
        return phases


def starts(spans: Spans) -> npt.NDArray[np.float64]:
    """When each span began, monotonic seconds."""
    return np.asarray(spans["start"] / 1e9, dtype=np.float64)


def ends(spans: Spans) -> npt.NDArray[np.float64]:
    """When each span ended, monotonic seconds."""
    return np.asarray((spans["start"] + spans["dur"]) / 1e9, dtype=np.float64)


def held_s(spans: Spans) -> npt.NDArray[np.float64]:
    """Seconds that each span was on a core or waited for one, where that is known (``CPU_KNOWN``)."""
    return (spans["cpu"].astype(np.float64) + spans["delay"]) / 1e7


def read_header(path: Path) -> np.void:
    """The header of a file as it is now. ValueError when it is not a recording."""
    header = np.fromfile(path, HEADER, 1)
    if not len(header) or header[0]["magic"] != layout.MAGIC or header[0]["record_bytes"] != RECORD.itemsize:
        raise ValueError(f"{path.name} is not a recording of this version of unstall")
    return header[0]


def read_spans(path: Path, first: int = 0) -> tuple[Spans, np.void]:
    """The complete records of a file from number ``first`` on, oldest first, and its header.

    Raises OSError when the file is gone, ValueError when it is not a recording or was written to all the while.
    """
    for _ in range(_ATTEMPTS):
        header = read_header(path)
        count = int(header["count"])
        flushed = min(int(header["flushed"]), count)
        older_at = HEADER_BYTES + (int(header["tail_records"]) + first) * RECORD.itemsize
        older = _records(path, older_at, flushed - first)
        skipped = max(first - flushed, 0)
        newest_at = HEADER_BYTES + skipped * RECORD.itemsize
        newest = _records(path, newest_at, count - flushed - skipped)
        if read_header(path)["flushed"] == header["flushed"]:  # else the tail was emptied while it was read
            return np.concatenate([older, newest]), header
    raise ValueError(f"{path.name} is being written to too fast")


def _records(path: Path, offset: int, most: int) -> Spans:
    """The records from a byte on, as many as the file has: a damaged header may speak of billions."""
    there = (path.stat().st_size - offset) // RECORD.itemsize
    return np.fromfile(path, RECORD, max(0, min(most, there)), offset=offset)


def read_latest(directory: Path, pid: int, most: int) -> ProcessRecording:
    """The newest ``most`` records of a process that goes on recording, in a bounded time however many there are.

    Raises what :func:`read_spans` does.
    """
    path = directory / f"rec-{pid}.bin"
    spans, header = read_spans(path, max(0, int(read_header(path)["count"]) - most))
    return _recording(directory, pid, spans[-most:], header)


def read_process(directory: Path, pid: int) -> ProcessRecording:
    """One process's recording; a process that wrote facts but no spans has none."""
    try:
        return _recording(directory, pid, *read_spans(directory / f"rec-{pid}.bin"))
    except (OSError, ValueError):
        names, facts = read_facts(directory / f"info-{pid}.jsonl")
        process = (facts.get("process") or [{}])[0]
        return ProcessRecording(pid, int(process.get("parent", 0)), np.empty(0, RECORD), names, facts)


def _recording(directory: Path, pid: int, spans: Spans, header: np.void) -> ProcessRecording:
    names, facts = read_facts(directory / f"info-{pid}.jsonl")
    return ProcessRecording(
        pid,
        int(header["parent"]),
        spans[np.lexsort((spans["depth"], spans["start"]))],
        names,
        facts,
        dropped=int(header["dropped"]),
        refetch_s=_refetch_s(header),
    )


def _refetch_s(header: np.void) -> float | None:
    looks = header["refetch_ns"][: int(header["refetches"])]
    return float(np.median(looks)) / 1e9 if len(looks) else None


def read_all(directory: Path) -> list[ProcessRecording]:
    """Every process that left something in the run directory."""
    pids = {int(path.stem.split("-")[1]) for path in directory.glob("rec-*.bin")}
    pids |= {int(path.stem.split("-")[1]) for path in directory.glob("info-*.jsonl")}
    return [read_process(directory, pid) for pid in sorted(pids)]


def read_facts(path: Path) -> tuple[dict[int, str], dict[str, list[dict[str, Any]]]]:
    """Names by their number, and the other facts by their kind; empty where there is no file."""
    names: dict[int, str] = {}
    facts: dict[str, list[dict[str, Any]]] = {}
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return names, facts
    for line in lines:
        try:
            fact = json.loads(line)
        except ValueError:
            continue  # the process was killed while it wrote this line
        if fact.get("kind") == "name":
            names[int(fact["id"])] = str(fact["name"])
        else:
            facts.setdefault(str(fact.get("kind")), []).append(fact)
    return names, facts

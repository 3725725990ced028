"""A machine's part: made from what was measured there, written to the store, and read back as a stranger's file.

A part is two files, because a report needs every rank's figures and only the late ranks' stacks.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Sequence
from typing import TypeVar

import msgspec
import numpy as np

from unstall.benchmark.gather.store import Store, StoreError
from unstall.benchmark.measure import LoopMeasurement
from unstall.benchmark.reader import ProcessRecording, Spans, ends, starts
from unstall.benchmark.steps import main_spans
from unstall.benchmark.thresholds import FEWEST_CALLS, MOST_KINDS
from unstall.child.seams.autograd import BACKWARD
from unstall.child.seams.collectives import COLLECTIVE, GROUP_SHIFT
from unstall.records.encoding import packed
from unstall.records.measurements import RankMeasurement
from unstall.records.observations import StackSample
from unstall.records.part import MOST_CALLS, VERSION, Exchanges, Part, RankPart

T = TypeVar("T")

MOST_BYTES = 1 << 26
"""The largest size of a part's file, packed or not: eight ranks take 200 KB."""
_NAME = re.compile(r"\d{7}-[\w.-]{1,80}-[0-9a-f]{8}\.part")
_DAMAGED = (msgspec.MsgspecError, zlib.error, ValueError, RecursionError, MemoryError)


def make(measured: LoopMeasurement, exit_code: int | None) -> Part | None:
    """The part of this machine; None where no rank of several ran here."""
    ranks, identity = measured.measurement.ranks, measured.process.identity
    if not ranks or identity is None:
        return None
    by_pid = {process.pid: process for process in measured.processes}
    return Part(
        job=identity.job,
        host=identity.host,
        world_size=identity.world_size,
        restart=identity.restart,
        exit_code=exit_code,
        ranks=[_rank_part(rank, by_pid[rank.pid], measured.processes) for rank in ranks],
    )


def _rank_part(rank: RankMeasurement, process: ProcessRecording, processes: Sequence[ProcessRecording]) -> RankPart:
    lives = sum(_has_rank(other, process) for other in processes)
    return RankPart(measurement=rank, restarts=lives - 1, exchanges=exchanges_of(process))


def _has_rank(process: ProcessRecording, like: ProcessRecording) -> bool:
    """Whether it joined the group as the same rank, in this life or another."""
    own, other = process.identity, like.identity
    return own is not None and other is not None and own.joined and own.rank == other.rank


def exchanges_of(process: ProcessRecording) -> list[Exchanges]:
    """The calls that all ranks enter together, by kind: those of the group of all ranks, and backward."""
    spans = main_spans(process)
    identity = process.identity
    world = list(range(identity.world_size)) if identity is not None else []
    everyone = [int(fact["number"]) for fact in process.facts.get("group", []) if fact.get("ranks") == world]
    collectives = spans[np.isin(spans["name"], process.of(COLLECTIVE)) & np.isin(spans["arg"] >> GROUP_SHIFT, everyone)]
    kinds = {
        COLLECTIVE.member(process.names[int(number)]): collectives[collectives["name"] == number]
        for number in np.unique(collectives["name"])
    }
    kinds["backward"] = spans[spans["name"] == process.ids.get(BACKWARD.event, -1)]
    most = sorted(kinds.items(), key=lambda item: (-len(item[1]), item[0]))[:MOST_KINDS]
    return [_thinned(kind, calls) for kind, calls in most if len(calls) >= FEWEST_CALLS]


def _thinned(kind: str, calls: Spans) -> Exchanges:
    """Every n-th, n a power of two: then ranks that made different numbers of calls still have some in common."""
    stride = 1
    while len(calls) > stride * MOST_CALLS:
        stride *= 2
    calls = calls[::stride]
    return Exchanges(
        kind=kind,
        stride=stride,
        starts_f8=starts(calls).astype("<f8").tobytes(),
        ends_f8=ends(calls).astype("<f8").tobytes(),
    )


def folder(part: Part) -> str:
    """The folder of a run's parts in the store."""
    return re.sub(r"[^\w.-]+", "-", part.job).strip(".-")[:100] or "run"


def publish(store: Store, part: Part, stacks: Sequence[StackSample], token: str) -> str:
    """Write a part, stacks first, so that whoever sees it sees all; its name in the folder.

    Raises StoreError. ``token``: eight hexadecimal digits of this machine's own.
    """
    host = re.sub(r"[^\w.-]+", "-", part.host)[:80] or "host"
    name = f"{min(part.numbers):07d}-{host}-{token}.part"
    store.write(f"{folder(part)}/{_stacks_name(name)}", _packed(stacks))
    store.write(f"{folder(part)}/{name}", _packed(part))
    return name


def names(store: Store, within: str, since: float | None) -> list[str]:
    """The parts in a folder, those of the lowest ranks first. ``since``: by the store's clock; older ones are of
    another run.
    """
    files = [file for file in store.files(within) if _NAME.fullmatch(file.name)]
    fresh = [file for file in files if since is None or file.modified is None or file.modified >= since]
    return sorted(file.name for file in fresh)


def read(store: Store, within: str, name: str) -> Part:
    """A part. Raises StoreError for whatever is none of this version."""
    part = _unpacked(store, f"{within}/{name}", Part)
    if part.version != VERSION:
        raise StoreError(f"{name} was written by another version of unstall (format {part.version})")
    return part


def read_stacks(store: Store, within: str, name: str) -> list[StackSample]:
    """The stacks of a part. Raises StoreError."""
    return _unpacked(store, f"{within}/{_stacks_name(name)}", list[StackSample])


def _stacks_name(part_name: str) -> str:
    return part_name.removesuffix(".part") + ".stacks"


def _packed(record: object) -> bytes:
    return gzip.compress(packed(record), 1, mtime=0)


def _unpacked(store: Store, name: str, kind: type[T]) -> T:
    data = store.read(name, MOST_BYTES)
    try:
        decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        content = decompressor.decompress(data, MOST_BYTES)
        if not decompressor.eof:
            raise ValueError("it is cut short, or unpacks to too much")
        return msgspec.msgpack.decode(content, type=kind)
    except _DAMAGED as error:
        reason = " ".join((str(error) or type(error).__name__).split())[:200]
        raise StoreError(f"{store.address(name)} is no part of a run: {reason}") from error

"""Nsight Systems: its SQLite export, whose tables and columns differ from version to version, and its reports.

Names are brought to Kineto's, so that what follows need not know where a timeline came from: "Memcpy HtoD (Pageable ->
Device)", "cudaLaunchKernel" without its version, operators without "seq = 12, op_id = 3".
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unstall.trace.readers import names as naming
from unstall.trace.readers.assemble import UNBALANCED, Columns, finish
from unstall.trace.readers.database import TraceDatabase
from unstall.trace.readers.kineto import Progress
from unstall.trace.readers.rows import UNTIMED
from unstall.trace.timeline import NONE, CopyKind, Device, DeviceKind, HostKind, Thread, Timeline, TraceError

# Enumerations where the export has no ENUM_* table that lists them.
COPY_KINDS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP", 11: "HtoD", 12: "DtoH", 13: "DtoD"}
COPY_NAMES = {CopyKind.H2D: "HtoD", CopyKind.D2H: "DtoH", CopyKind.D2D: "DtoD", CopyKind.H2H: "HtoH"}
MEMORY_KINDS = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device", 6: "Managed"}
WAIT_NAMES = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
NVTX_RANGES = (59, 60, 70, 71)
"""Push/pop and start/end ranges, with plain and registered strings."""

_OPERATOR = re.compile(
    r"^(?P<name>.*?)(?:, seq = (?P<seq>\d+))?(?:, op_id = (?P<id>\d+))?(?:, sizes = (?P<sizes>.*))?$"
)
"""Ranges of torch.autograd.profiler.emit_nvtx."""
_VERSION = re.compile(r"_v\d+(?:_pt[ds]z)?$")


class _Names:
    """Names by number, and numbers by name."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def add(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))


def read_nsight(path: Path, progress: Progress | None = None) -> list[Timeline]:
    """The processes of a report or its SQLite export that used a device, or the busiest if none did."""
    if path.suffix in (".nsys-rep", ".qdrep"):
        return _convert(path, progress)
    try:
        with TraceDatabase(path) as database:
            return _read(database, path, progress)
    except sqlite3.DatabaseError as error:
        raise TraceError(f"{path}: a damaged SQLite file ({error})") from None
    except UnicodeDecodeError:  # sqlite3's message quotes damaged bytes
        raise TraceError(f"{path}: a damaged SQLite file") from None


def _convert(path: Path, progress: Progress | None) -> list[Timeline]:
    """Have nsys export the report."""
    nsys = shutil.which("nsys")
    if not nsys:
        raise TraceError(
            f"{path}: an Nsight Systems report can only be read with nsys, which is not installed here. "
            f"Where it is: nsys export --type sqlite {path.name}, and give unstall the .sqlite file"
        )
    with tempfile.TemporaryDirectory() as folder:
        exported = Path(folder, "report.sqlite")
        command = [nsys, "export", "--type", "sqlite", "--output", str(exported), str(path)]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode or not exported.exists():
            message = (result.stderr or result.stdout).strip().splitlines() or ["no message"]
            raise TraceError(f"{path}: nsys could not export it: {message[-1]}")
        timelines = read_nsight(exported, progress)
    for timeline in timelines:
        timeline.path = str(path)
    return timelines


def _read(database: TraceDatabase, path: Path, progress: Progress | None) -> list[Timeline]:
    if not any(name.startswith("CUPTI_ACTIVITY_KIND_") or name == "NVTX_EVENTS" for name in database.tables):
        raise TraceError(f"{path}: an SQLite file, but no export of Nsight Systems")
    reader = _NsightReader(database)
    device, waits, host = reader.device(), reader.waits(), reader.host()
    for table in (device, waits):
        _adopt(table, host)
    if progress:
        progress(1.0)
    active, counts = np.unique(device["process"], return_counts=True)
    if not len(active):
        active, counts = np.unique(host["process"], return_counts=True)
        active = active[[int(counts.argmax())]] if len(active) else active
    if not len(active):
        raise TraceError(f"{path}: no CUDA, NVTX or API events in it")
    tables = {"host": host, "device": device, "waits": waits}
    timelines = [_timeline(reader, path, process, tables) for process in active.tolist()]
    if len(timelines) > 1:  # each process of a job that one report covers is a rank
        for rank, timeline in enumerate(timelines):
            timeline.rank, timeline.world_size = rank, len(timelines)
    return timelines


def _adopt(table: Columns, host: Columns) -> None:
    """Old exports do not say whose a kernel is: it is of the process that made the call of the same correlation id,
    else of the one that makes most calls.
    """
    strays = np.flatnonzero(table["process"] < 0)
    if not len(strays):
        return
    calls = np.flatnonzero(host["correlation"] >= 0)
    calls = calls[np.argsort(host["correlation"][calls], kind="stable")]
    if not len(calls):
        table["process"][strays] = host["process"][0] if len(host["process"]) else 0
        return
    keys, processes = host["correlation"][calls], host["process"][calls]
    distinct, counts = np.unique(processes, return_counts=True)
    wanted = table["correlation"][strays]
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    table["process"][strays] = np.where(keys[at] == wanted, processes[at], distinct[counts.argmax()])


def _timeline(reader: _NsightReader, path: Path, process: int, tables: dict[str, Columns]) -> Timeline:
    mine: dict[str, Columns] = {}
    for which, table in tables.items():
        chosen = table["process"] == process
        mine[which] = {name: column[chosen] for name, column in table.items() if name != "process"}
    used, mine["host"]["thread"] = np.unique(mine["host"].pop("global_tid"), return_inverse=True)
    mine["host"]["thread"] = mine["host"]["thread"].astype(np.int32)
    threads = [reader.thread(tid) for tid in used.tolist()]
    events = sum(len(table["name"]) for table in mine.values())
    timeline = finish(str(path), "nsight", list(reader.names.numbers), threads, **mine, problems=dict(reader.problems))
    timeline.devices = reader.devices()
    timeline.input_texts = list(reader.inputs.numbers)
    timeline.origin_ns += reader.clock_offset()
    timeline.events = events
    return timeline


class _NsightReader:
    """Tables of the export to columns; the tables of all processes together, with a column "process"."""

    def __init__(self, database: TraceDatabase) -> None:
        self.names = _Names()
        self.inputs = _Names()
        self.problems: dict[str, int] = {}
        self._database = database
        self._strings = dict(database.rows("StringIds", "id", "value"))
        self._thread_names = dict(database.rows("ThreadNames", "globalTid", "nameId"))
        self._process_names = dict(database.rows("PROCESSES", "pid", "name"))
        self._copy_kinds = COPY_KINDS | self._listed("ENUM_CUDA_MEMCPY_OPER", _direction)
        self._memory_kinds = MEMORY_KINDS | self._listed("ENUM_CUDA_MEM_KIND", _memory)

    # ---- device

    def device(self) -> Columns:
        """Kernels, graphs recorded as a whole, copies and memsets."""
        return self._timed(self._kernels(), self._graphs(), self._copies(), self._memsets())

    def _work(self, table: str, kind: DeviceKind) -> Columns:
        database = self._database
        start, end, device, stream, correlation, process, size, node = database.columns(
            table, "start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "graphNodeId"
        )
        return {
            "start_ns": start,
            "dur_ns": self._durations(start, end),
            "name": np.zeros(len(start), np.int32),
            "device": device.astype(np.int32),
            "stream": stream,
            "kind": np.full(len(start), kind, np.uint8),
            "correlation": correlation,
            "external": np.full(len(start), NONE, np.int64),
            "bytes": size,
            "graph": (node > 0).astype(np.uint8),
            "collective": np.full(len(start), NONE, np.int32),
            "process": _process(process),
        }

    def _kernels(self) -> Columns:
        table = "CUPTI_ACTIVITY_KIND_KERNEL"
        columns = self._work(table, DeviceKind.KERNEL)
        full, short = self._database.columns(table, "demangledName", "shortName")
        columns["name"] = self._named(np.where(full >= 0, full, short))
        return columns

    def _graphs(self) -> Columns:
        columns = self._work("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", DeviceKind.KERNEL)
        columns["name"][:] = self.names.add("CUDA graph")
        columns["graph"][:] = 1
        return columns

    def _copies(self) -> Columns:
        table = "CUPTI_ACTIVITY_KIND_MEMCPY"
        columns = self._work(table, DeviceKind.MEMCPY)
        kinds = np.stack(self._database.columns(table, "copyKind", "srcKind", "dstKind"), axis=1)
        distinct, which = np.unique(kinds, axis=0, return_inverse=True)
        numbers = [self.names.add(self._copy_name(*row)) for row in distinct.tolist()]
        columns["name"] = np.array(numbers, np.int32)[which.reshape(-1)]
        return columns

    def _memsets(self) -> Columns:
        columns = self._work("CUPTI_ACTIVITY_KIND_MEMSET", DeviceKind.MEMSET)
        columns["name"][:] = self.names.add("Memset (Device)")
        return columns

    def waits(self) -> Columns:
        """Synchronisations. What a wait waits for is the latest record of the same event."""
        start, end, device, stream, correlation, process, kind, event, record = self._database.columns(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            *("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "syncType"),
            *("eventId", "eventSyncId"),
        )
        numbers = {code: self.names.add(WAIT_NAMES.get(code, "Sync")) for code in np.unique(kind).tolist()}
        on_stream, on_correlation = self._records(event, record)
        return self._timed(
            {
                "start_ns": start,
                "dur_ns": self._durations(start, end),
                "name": np.array([numbers[code] for code in kind.tolist()], np.int32),
                "device": device.astype(np.int32),
                "stream": stream,
                "correlation": correlation,
                "on_stream": on_stream,
                "on_correlation": on_correlation,
                "process": _process(process),
            }
        )

    def _records(self, event: NDArray[np.int64], sync: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Stream and correlation id of the cudaEventRecord that each wait is for, -1 where not recorded."""
        table = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
        columns = self._database.columns(table, "eventId", "eventSyncId", "streamId", "correlationId")
        records = {(e, s): (stream, correlation) for e, s, stream, correlation in zip(*(c.tolist() for c in columns))}
        waited_for = [records.get(key, (NONE, NONE)) for key in zip(event.tolist(), sync.tolist())]
        pairs = np.array(waited_for, np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    # ---- host

    def host(self) -> Columns:
        """API calls, NVTX ranges and the profiler's own overhead."""
        calls = [self._calls("CUPTI_ACTIVITY_KIND_RUNTIME"), self._calls("CUPTI_ACTIVITY_KIND_DRIVER")]
        return self._timed(*calls, self._calls("PROFILER_OVERHEAD", HostKind.OVERHEAD), self._ranges())

    def _calls(self, table: str, kind: HostKind | None = None) -> Columns:
        start, end, tid, correlation, name = self._database.columns(
            table, "start", "end", "globalTid", "correlationId", "nameId"
        )
        numbers = self._named(name, strip=_VERSION)
        is_driver = np.array([bool(re.match(r"cu[A-Z]", name)) for name in self.names.numbers], bool)[numbers]
        by_name = np.where(is_driver, HostKind.DRIVER, HostKind.RUNTIME)
        kinds = (by_name if kind is None else np.full(len(start), kind)).astype(np.uint8)
        return _host_columns(start, self._durations(start, end), numbers, tid, kinds, correlation=correlation)

    def _ranges(self) -> Columns:
        """NVTX. Operators are told from other ranges by the ids that emit_nvtx writes, or by their name."""
        rows = []
        wanted = ("start", "end", "globalTid", "eventType", "text", "textId")
        for start, end, tid, kind, text, text_id in self._database.rows("NVTX_EVENTS", *wanted):
            if kind is not None and kind not in NVTX_RANGES:
                continue
            if not all(isinstance(value, int) for value in (start, end, tid)):
                self._problem(UNBALANCED if None in (start, end) else UNTIMED)
                continue
            rows.append((start, end, tid, *self._range(str(text or self._strings.get(text_id, "")))))
        columns = np.array(rows, np.int64).reshape(-1, 8).T.copy()
        start, end, tid, name, host_kind, external, sequence, inputs = columns
        names, kinds, inputs = name.astype(np.int32), host_kind.astype(np.uint8), inputs.astype(np.int32)
        known = {"external": external, "sequence": sequence, "inputs": inputs}
        return _host_columns(start, self._durations(start, end), names, tid, kinds, **known)

    def _range(self, text: str) -> tuple[int, int, int, int, int]:
        """Name, kind, external id, sequence number and inputs of a range."""
        match: Any = _OPERATOR.match(text.replace("\n", " "))
        operator = match["id"] or match["seq"] or match["sizes"] or re.match(r"\w+::\w", text)
        sizes = self.inputs.add(f"[{match['sizes']}]") if match["sizes"] else NONE
        kind = HostKind.OPERATOR if operator else HostKind.ANNOTATION
        return self.names.add(match["name"]), kind, _id(match["id"]), _id(match["seq"]), sizes

    # ---- what is what

    def _listed(self, table: str, read: Callable[[str], str]) -> dict[int, str]:
        """An enumeration as the export lists it itself, without what is not known here."""
        rows = self._database.rows(table, "id", "label")
        return {number: word for number, label in rows if (word := read(str(label or "")))}

    def _copy_name(self, kind: int, source: int, target: int) -> str:
        if kind not in self._copy_kinds:
            return "Memcpy"
        sides = " -> ".join(self._memory_kinds.get(side, "Unknown") for side in (source, target))
        return f"Memcpy {self._copy_kinds[kind]} ({sides})"

    def _named(self, ids: NDArray[np.int64], strip: re.Pattern[str] | None = None) -> NDArray[np.int32]:
        """Numbers of names from ids of strings."""
        distinct, which = np.unique(ids, return_inverse=True)
        texts = [str(self._strings.get(number, f"string {number}")) for number in distinct.tolist()]
        numbers = [self.names.add(strip.sub("", text) if strip else text) for text in texts]
        return np.array(numbers, np.int32)[which] if len(ids) else np.zeros(0, np.int32)

    def _durations(self, start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
        self._problem("negative durations (read as 0)", int((end < start).sum()))
        return np.maximum(end - start, 0)

    def _timed(self, *parts: Columns) -> Columns:
        """The parts of a table as one, without rows whose start is missing or no integer."""
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        missing = columns["start_ns"] == NONE
        if not missing.any():
            return columns
        self._problem(UNTIMED, int(missing.sum()))
        return {name: column[~missing] for name, column in columns.items()}

    def _problem(self, what: str, count: int = 1) -> None:
        if count:
            self.problems[what] = self.problems.get(what, 0) + count

    def thread(self, global_tid: int) -> Thread:
        """A globalTid is hardware, virtual machine, process and thread id in 8, 8, 24 and 24 bits."""
        pid, tid = global_tid >> 24 & 0xFFFFFF, global_tid & 0xFFFFFF
        name = self._strings.get(self._thread_names.get(global_tid), "")
        return Thread(pid, tid, str(name), str(self._process_names.get(pid, "")))

    def devices(self) -> list[Device]:
        """The GPUs of the machine, if the export lists them."""
        wanted = ("id", "name", "totalMemory", "smCount", "computeMajor", "computeMinor")
        return [
            Device(number, str(name or ""), _int(memory), _int(sms), "" if major is None else f"{major}.{minor or 0}")
            for number, name, memory, sms, major, minor in self._database.rows("TARGET_INFO_GPU", *wanted)
            if isinstance(number, int)
        ]

    def clock_offset(self) -> int:
        """Nanoseconds since 1970 at the file's own zero."""
        for epoch, clock in self._database.rows("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", "systemClockNs"):
            return (_int(epoch) or 0) - (_int(clock) or 0)
        return 0


def _process(global_id: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of a global id; -1 if there is none."""
    return np.where(global_id >= 0, global_id >> 24 & 0xFFFFFF, NONE)


def _host_columns(
    start: NDArray[np.int64],
    duration: NDArray[np.int64],
    name: NDArray[np.int32],
    tid: NDArray[np.int64],
    kind: NDArray[np.uint8],
    **known: NDArray[Any],
) -> Columns:
    """Columns of the host table; -1 in those that are not known."""
    none = np.full(len(start), NONE, np.int64)
    columns: Columns = {"start_ns": start, "dur_ns": duration, "name": name, "kind": kind, "process": _process(tid)}
    columns |= {"global_tid": tid, "correlation": none, "external": none, "sequence": none}
    columns |= dict.fromkeys(("inputs", "stack"), none.astype(np.int32))
    return columns | known


def _direction(label: str) -> str:
    """From "Host-to-Device" and the like; empty for all else."""
    return COPY_NAMES.get(naming.copy_kind(label), "")


def _memory(label: str) -> str:
    """From "Pageable", "Device Static"; empty for what has no name."""
    return label.split(" ")[0].capitalize()


def _int(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _id(digits: str | None) -> int:
    """Of what emit_nvtx writes into a name; more than 64 bits are none."""
    return int(digits) if digits and len(digits) < 19 else NONE

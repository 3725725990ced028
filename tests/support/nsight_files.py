"""Exports of Nsight Systems as nsys writes them, made by the tests that read them."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

PROCESS = 0x1_000_123 << 24  # hardware and virtual machine in the upper bits, then the process: 0x123
PID = 0x123


class Export:
    """Tables of rows, to be written at once; columns of a table are those of its rows."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = {}
        self._strings: dict[str, int] = {}

    def string(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = len(self._strings) + 1
            self.add("StringIds", id=self._strings[text], value=text)
        return self._strings[text]

    def add(self, table: str, **row: Any) -> None:
        self.tables.setdefault(table, []).append(row)

    def kernel(
        self,
        name: str,
        start: int,
        end: int,
        correlation: int,
        device: int = 0,
        stream: int = 7,
        process: int = PROCESS,
        **more: Any,
    ) -> None:
        facts = {"deviceId": device, "streamId": stream, "correlationId": correlation, "globalPid": process}
        self.add("CUPTI_ACTIVITY_KIND_KERNEL", start=start, end=end, demangledName=self.string(name), **facts, **more)

    def copy(self, kind: int, source: int, target: int, start: int, end: int, correlation: int, size: int) -> None:
        facts = {"deviceId": 0, "streamId": 7, "correlationId": correlation, "globalPid": PROCESS, "bytes": size}
        self.add(
            "CUPTI_ACTIVITY_KIND_MEMCPY", start=start, end=end, copyKind=kind, srcKind=source, dstKind=target, **facts
        )

    def call(self, name: str, start: int, end: int, correlation: int, tid: int = PROCESS + 5) -> None:
        self.add(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            start=start,
            end=end,
            nameId=self.string(name),
            correlationId=correlation,
            globalTid=tid,
        )

    def range(
        self,
        text: str | None,
        start: int,
        end: int | None,
        kind: int = 59,
        tid: int = PROCESS + 5,
        text_id: int | None = None,
    ) -> None:
        self.add("NVTX_EVENTS", start=start, end=end, eventType=kind, text=text, textId=text_id, globalTid=tid)

    def write(self, path: Path) -> Path:
        with sqlite3.connect(path) as connection:
            for table, rows in self.tables.items():
                columns = list(rows[0])
                connection.execute(f'CREATE TABLE "{table}" ({", ".join(columns)})')
                marks = ", ".join("?" * len(columns))
                connection.executemany(
                    f'INSERT INTO "{table}" VALUES ({marks})', [[row.get(c) for c in columns] for row in rows]
                )
        connection.close()
        return path


def training(steps: int = 2, process: int = PROCESS, device: int = 0) -> Export:
    """Steps of 1 ms: an operator launches a kernel, which is copied from and waited for."""
    export = Export()
    tid = process + 5
    export.add("ThreadNames", nameId=export.string("python3"), globalTid=tid)
    for n in range(steps):
        at, ids = n * 1_000_000, n * 10 + 1
        export.range(f"iteration {n}", at, at + 990_000, tid=tid)
        export.range(
            f"aten::mm, seq = {n + 4}, op_id = {n + 70}, sizes = [[2, 3], [3, 4]]", at + 10_000, at + 90_000, tid=tid
        )
        export.call("cudaLaunchKernel_v7000", at + 20_000, at + 25_000, ids, tid)
        export.kernel("gemm<float>", at + 50_000, at + 400_000, ids, device, process=process)
        export.call("cudaStreamSynchronize_v3020", at + 100_000, at + 420_000, ids + 1, tid)
    return export

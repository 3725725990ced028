"""Valid files with a field changed, through the real commands: no crash, no hang, no gigabyte, nothing on the terminal.

A part of it is in `make test`; `make fuzz` draws new ones for as long as it is told.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from pathlib import Path

import kineto_files
import msgspec
import numpy as np
import pytest
from fuzz_limits import Worker
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from makers import entry, kept, report
from mutations import as_cell, as_json, as_msgpack, mutations, plain_values, values
from nsight_files import training

from unstall.benchmark import archive
from unstall.benchmark.reader import HEADER, RECORD
from unstall.child import layout
from unstall.records.archive import Excerpt
from unstall.records.encoding import packed
from unstall.records.observations import Frame, MachinePoint, ResourcePoint, StackSample
from unstall.repeat.ledger import Ledger, _to_row

FUZZ = settings(
    deadline=None,
    max_examples=12 if settings.default.derandomize else 100,  # profile ci, and `make fuzz`
    phases=[Phase.explicit, Phase.generate],  # a failure names its file; shrinking runs a command for each try
    suppress_health_check=list(HealthCheck),
)

_RUN = kept(np.full(60, 0.1))
_RUN = msgspec.structs.replace(
    _RUN,
    epochs=[(100.0, 0.1)],
    resources=[ResourcePoint(100.0 + n, 1, 1.0, 0.0, 5_000_000) for n in range(5)],
    machine=[MachinePoint(100.0, 0.5), MachinePoint(105.0, 0.5)],
    disturbed=[(101.0, 0.1)],
    stacks=[StackSample(1, "MainThread", (Frame("decode", "/w/train.py", 7),), 50, True)],
    excerpts=[Excerpt("/w/train.py", 5, ["def decode():", "    x = 1", "    y = 2"])],
)
_REPORT = json.loads(report().to_json())
_ARCHIVE = msgspec.msgpack.decode(packed(_RUN))
_TRACE = kineto_files.document(
    kineto_files.small(), distributedInfo={"rank": 0, "world_size": 2}, deviceProperties=[{"id": 0, "name": "H100"}]
)
_EXPORT = training().tables
_LEDGER = [_to_row(entry("a")), _to_row(entry("b", 11.0))]
_REMEDIES = {"loader": {"num_workers": 4, "pin_memory": True}, "optimizer": {"fused": True}, "threads": 2}
_FACTS = [
    {"kind": "process", "rank": 0, "world_size": 1, "parent": 1},
    {"kind": "name", "id": 0, "name": "optimizer"},
    {"kind": "name", "id": 1, "name": "loader.next"},
    {"kind": "phase", "phase": {"name": "mine"}},
    {"kind": "loader", "workers": 2, "prefetch_factor": 2},
]

_READ_RUN = [[], ["--md", "-"], ["--json", "-"], ["--html", "page.html"]]
OF_RUN = st.sampled_from(
    [["report", "FILE", *more] for more in _READ_RUN]
    + [["what-if", "FILE", *more] for more in ([], ["--workers", "4", "--md", "-"], ["--set", "forward=0.5x"])]
    + [["compare", "FILE", "valid"], ["compare", "valid", "FILE", "--md", "-"]]
    + [
        ["export", "FILE", *more]
        for more in (["--csv", "a.csv"], ["--prometheus", "a.prom"], ["--parquet", "a.parquet"])
    ]
)
OF_TRACE = st.sampled_from(
    [["trace", "FILE", *more] for more in _READ_RUN]
    + [["trace", "FILE", "--what-if", change] for change in ("launch=0", "sync=0", "aten::mm=0.5x")]
    + [["trace", "--compare", "FILE", "FILE"], ["trace", "FILE", "FILE"], ["report", "FILE"]]
    + [["export", "FILE", "--chrome", "a.json"], ["export", "FILE", "--perfetto", "a.pftrace"]]
    + [["export", "FILE", "--csv", "a.csv"], ["export", "FILE", "--parquet", "a.parquet"]]
)
OF_LEDGER = st.sampled_from(
    [["history", "--all", *more] for more in ([], ["--md", "-"], ["--json", "-"])]
    + [["next"], ["compare", "valid", "other"]]
)


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    top = tmp_path_factory.mktemp("fuzz")
    (top / "outside").write_text("not to be touched")
    (top / "case").mkdir()
    worker = Worker(top / "case")
    yield worker
    worker.stop()


def folder(worker):
    """Emptied, but for two valid recordings."""
    for path in worker.folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, run_id in (("valid", "valid"), ("other", "other")):
        (worker.folder / name).mkdir()
        archive.write(worker.folder / name / archive.FILE_NAME, kept(np.full(60, 0.1), run_id=run_id))
    return worker.folder


def check(worker, arguments, name):
    worker.check([name if argument == "FILE" else argument for argument in arguments])


@FUZZ
@given(document=mutations(_REPORT, values), arguments=OF_RUN)
def test_reports(worker, document, arguments):
    (folder(worker) / "file.json").write_bytes(as_json(document))
    check(worker, arguments, "file.json")


@FUZZ
@given(document=mutations(_ARCHIVE, values), arguments=OF_RUN)
def test_recordings(worker, document, arguments):
    (folder(worker) / "file.msgpack.gz").write_bytes(gzip.compress(as_msgpack(document), 1))
    check(worker, arguments, "file.msgpack.gz")


@FUZZ
@given(document=mutations(_TRACE, values), arguments=OF_TRACE, packed=st.booleans())
def test_traces(worker, document, arguments, packed):
    data = as_json(document)
    name = "file.json.gz" if packed else "file.json"
    (folder(worker) / name).write_bytes(gzip.compress(data, 1) if packed else data)
    check(worker, arguments, name)


@FUZZ
@given(tables=mutations(_EXPORT, plain_values), arguments=OF_TRACE)
def test_exports_of_nsight(worker, tables, arguments):
    write_tables(folder(worker) / "file.sqlite", tables)
    check(worker, arguments, "file.sqlite")


@FUZZ
@given(rows=mutations(_LEDGER, plain_values), arguments=OF_LEDGER, keyed=st.booleans())
def test_ledgers(worker, rows, arguments, keyed):
    path = folder(worker) / "ledger.sqlite"
    if keyed:  # the tables that unstall makes
        with Ledger(path):
            pass
        with sqlite3.connect(path) as connection:
            for row in rows if isinstance(rows, list) else []:
                known = {name: as_cell(row[name]) for name in _LEDGER[0] if isinstance(row, dict) and name in row}
                if known:
                    marks = ", ".join("?" * len(known))
                    sql = f"INSERT OR IGNORE INTO runs ({', '.join(known)}) VALUES ({marks})"
                    connection.execute(sql, list(known.values()))
        connection.close()
    else:
        write_tables(path, {"runs": rows, "ledger_version": [{"version": 1}]})
    worker.check([*arguments, "--ledger", "ledger.sqlite"])


@FUZZ
@given(document=mutations(_REMEDIES, values))
def test_remedies(worker, document):
    text = "\n".join(toml(document if isinstance(document, dict) else {"value": document}))
    (folder(worker) / "remedies.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
    worker.check(["@remedies", "remedies.toml"])


@FUZZ
@given(
    facts=mutations(_FACTS, values),
    header=mutations({"count": 20, "flushed": 0, "tail_records": layout.TAIL_RECORDS, "parent": 1}, values),
    record=mutations({"start": 10**9, "dur": 10**6, "depth": 0, "thread": 1, "flags": layout.MAIN}, values),
)
def test_recordings_of_a_run(worker, facts, header, record):
    path = folder(worker)
    lines = [as_json(fact) for fact in (facts if isinstance(facts, list) else [facts])]
    (path / "info-7.jsonl").write_bytes(b"\n".join(lines))
    first = np.zeros(1, HEADER)
    first["magic"], first["record_bytes"], first["pid"] = layout.MAGIC, RECORD.itemsize, 7
    spans = np.zeros(20, RECORD)
    spans["start"] = np.arange(20) * 10**8
    spans["name"] = np.arange(20) % 2
    for array, fields in ((first, header), (spans[10:], record)):
        for name, value in fields.items() if isinstance(fields, dict) else []:
            if name in (array.dtype.names or ()) and isinstance(value, int):
                array[name] = value % (1 << 8 * array.dtype[name].itemsize)
    (path / "rec-7.bin").write_bytes(first.tobytes().ljust(layout.HEADER_BYTES, b"\0") + spans.tobytes())
    worker.check(["@recording", "."])


def write_tables(path: Path, tables) -> None:
    """An SQLite file of the rows that are rows; their columns are what any of them has."""
    with sqlite3.connect(path) as connection:
        for number, (table, rows) in enumerate(tables.items() if isinstance(tables, dict) else []):
            rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
            columns = list(dict.fromkeys(sqlite_name(name, n) for row in rows for n, name in enumerate(row)))
            if not columns:
                continue
            quoted = ", ".join(f'"{column}"' for column in columns)
            connection.execute(f'CREATE TABLE "{sqlite_name(table, number)}" ({quoted})')
            for row in rows:
                named = {sqlite_name(name, n): as_cell(value) for n, (name, value) in enumerate(row.items())}
                marks = ", ".join("?" * len(columns))
                cells = [named.get(column) for column in columns]
                connection.execute(f'INSERT INTO "{sqlite_name(table, number)}" VALUES ({marks})', cells)
    connection.close()


def sqlite_name(name: str, number: int) -> str:
    """The name as SQLite takes it: no lone surrogates, no NUL, no quote, not reserved, not of another case only."""
    text = "".join(c for c in name if c not in '\0"' and not 0xD800 <= ord(c) < 0xE000)[:1000]
    return text if name.isidentifier() else f"{number} {text}"


def toml(table: dict, name: str = "") -> list[str]:
    """Lines of TOML, strings as JSON has them."""
    tables = {key: value for key, value in table.items() if isinstance(value, dict) and not name}
    own = [f"{json.dumps(key)} = {as_json(value).decode()}" for key, value in table.items() if key not in tables]
    heads = [f"[{name}]"] if name else []
    return [*heads, *own, *(line for key, value in tables.items() for line in toml(value, json.dumps(key)))]

"""Files that got through once: each ends within ten seconds and a gigabyte, in one line, and no run is lost unsaid."""

from __future__ import annotations

import sqlite3
import zlib

import pytest
from fuzz_limits import ended, refused
from makers import entry, report
from nsight_files import training

from unstall.repeat.database import LedgerError
from unstall.repeat.ledger import Ledger

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {columns} FROM n"
ESCAPES = "\x1b]0;title\x07\x1b[31mred\x9b2J\x7f\r"


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as opened:
        opened.add([entry("a")])
    return path


@pytest.fixture
def blanks(tmp_path):
    """3 GiB of blanks in 3 MB."""
    path = tmp_path / "blanks.json.gz"
    packer = zlib.compressobj(9, wbits=31)
    piece = b" " * (64 << 20)
    packed = b"".join(packer.compress(piece) for _ in range(4))
    path.write_bytes((packed + packer.flush()) * 12)
    assert path.stat().st_size < 4 << 20
    return path


def changed(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def columns(path):
    with sqlite3.connect(path) as connection:
        return [row[1] for row in connection.execute("PRAGMA table_info(runs)")]


@pytest.mark.parametrize("verb", ["trace", "report", "what-if"])
def test_blanks_without_end(verb, blanks, tmp_path):
    assert "unpacks to more than" in refused([verb, str(blanks)], tmp_path)


def test_a_ledger_whose_schema_is_no_text(ledger, tmp_path):
    changed(ledger, "CREATE TABLE mark_of_the_schema (a)")
    ledger.write_bytes(ledger.read_bytes().replace(b"mark_of_the_schema", b"mark_of_\xff\xfe\xff_schema"))
    ended(["history", "--all", "--ledger", str(ledger)], tmp_path)
    ledger.write_bytes(ledger.read_bytes().replace(b"CREATE TABLE mark", b"CREATE TABLE \xff\x1b]0"))
    assert "damaged" in refused(["history", "--all", "--ledger", str(ledger)], tmp_path)


def test_a_ledger_with_values_that_are_no_text(ledger, tmp_path):
    changed(ledger, "UPDATE runs SET host = CAST(x'ff1b5d' AS TEXT)")
    assert "ledger" in refused(["history", "--all", "--ledger", str(ledger)], tmp_path)


def test_a_ledger_whose_runs_are_a_view_without_end(ledger, tmp_path):
    computed = ", ".join(f"i AS {name}" for name in columns(ledger))
    changed(ledger, "DROP TABLE runs", f"CREATE VIEW runs AS {ENDLESS.format(columns=computed)}")
    assert "view runs" in refused(["history", "--all", "--ledger", str(ledger)], tmp_path)


def test_a_ledger_whose_version_is_a_view_without_end(ledger, tmp_path):
    endless = ENDLESS.format(columns="max(i) AS version")
    changed(ledger, "DROP TABLE ledger_version", f"CREATE VIEW ledger_version AS {endless}")
    assert "view ledger_version" in refused(["history", "--all", "--ledger", str(ledger)], tmp_path)


def test_a_ledger_with_a_computed_column(ledger, tmp_path):
    changed(ledger, "ALTER TABLE runs ADD COLUMN more TEXT GENERATED ALWAYS AS (hex(zeroblob(400000000)))")
    assert "computed column" in refused(["history", "--all", "--ledger", str(ledger)], tmp_path)


def test_a_trigger_that_deletes_runs_is_not_obeyed(ledger):
    changed(ledger, "CREATE TRIGGER gone AFTER INSERT ON runs BEGIN DELETE FROM runs; END")
    with pytest.raises(LedgerError, match="the trigger gone"), Ledger(ledger) as opened:
        opened.add([entry("b")])
    changed(ledger, "DROP TRIGGER gone")
    with Ledger(ledger) as opened:
        assert [run.id for run in opened.runs()] == ["a"]


def test_a_ledger_that_does_not_keep_a_run_is_told(ledger):
    others = [name for name in columns(ledger) if name not in ("id", "kind")]
    one_of_a_kind = ["id TEXT PRIMARY KEY", "kind TEXT UNIQUE ON CONFLICT IGNORE", *others]
    changed(ledger, "DROP TABLE runs", f"CREATE TABLE runs ({', '.join(one_of_a_kind)})")
    with Ledger(ledger) as opened, pytest.raises(LedgerError, match="did not keep the run c"):
        opened.add([entry("b"), entry("c")])


def test_a_trigger_name_with_escapes(ledger, tmp_path):
    changed(ledger, f'CREATE TRIGGER "{ESCAPES}" AFTER INSERT ON runs BEGIN DELETE FROM runs; END')
    assert "trigger" in refused(["history", "--all", "--ledger", str(ledger)], tmp_path)


def test_an_export_whose_ranges_are_a_view_without_end(tmp_path):
    path = training().write(tmp_path / "export.sqlite")
    names = "i AS start, i AS 'end', 1 AS globalTid, 59 AS eventType, hex(i) AS text, 1 AS textId"
    changed(path, "DROP TABLE NVTX_EVENTS", f"CREATE VIEW NVTX_EVENTS AS {ENDLESS.format(columns=names)}")
    ended(["trace", str(path)], tmp_path)


def test_an_export_of_computed_columns(tmp_path):
    path = training().write(tmp_path / "export.sqlite")
    changed(path, "ALTER TABLE StringIds ADD COLUMN more TEXT GENERATED ALWAYS AS (hex(zeroblob(400000000)))")
    ended(["trace", str(path)], tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        ["what-if"],
        ["report"],
        ["report", "--md", "-"],
        ["compare", "other.json"],
        ["export", "--csv", "steps.csv"],
        ["export", "--prometheus", "metrics.prom"],
    ],
)
def test_a_run_id_with_escapes(arguments, tmp_path):
    (tmp_path / "run.json").write_bytes(report(run_id=f"run {ESCAPES}").to_json())
    (tmp_path / "other.json").write_bytes(report(run_id=f"other {ESCAPES}").to_json())
    verb, *more = arguments
    ended([verb, "run.json", *more], tmp_path)


@pytest.mark.parametrize(
    "value",
    ["-1", "1" + "0" * 5000, "[" * 10_000, "[" + "[]," * 10**6 + "]"],
    ids=["negative", "digits", "deep", "long"],
)
def test_remedies_that_no_program_can_be_given(value, tmp_path):
    (tmp_path / "remedies.toml").write_text(f"threads = {value}")
    (tmp_path / "train.py").write_text("print('started')")
    process = ended(["run", "--with", "remedies.toml", "train.py"], tmp_path)
    assert process.returncode == 2 and b"started" not in process.stdout
    assert b"remedies.toml is no remedies file" in process.stderr

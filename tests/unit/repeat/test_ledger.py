"""The SQLite ledger: what goes in comes out, whoever else writes, dies or fills the disk meanwhile."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from changes import changed
from makers import entry, report

from unstall import environment
from unstall.benchmark import archive, state
from unstall.records.comparison import Entry
from unstall.repeat import database, ledger, schema
from unstall.repeat.database import LedgerError
from unstall.repeat.ledger import Ledger, entry_of
from unstall.repeat.revision import Revision


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "ledger.sqlite"


def test_runs_come_back_oldest_first(path):
    later = entry("b", started="2026-01-03T00:00:00Z", environment={"gpus": [{"name": "H200"}]}, exit_code=-9)
    with Ledger(path) as opened:
        opened.add([later, entry("a")])
    with Ledger(path) as opened:
        assert opened.runs() == [entry("a"), later]
        assert opened.runs(most=1) == [later]
        assert opened.runs("elsewhere") == []


def test_a_run_that_is_entered_again_replaces_itself(path):
    with Ledger(path) as opened:
        opened.add([entry("a", 1.0)])
        opened.add([entry("a", 2.0)])
        assert [one.steps_per_s for one in opened.runs()] == [2.0]


def test_all_of_a_transaction_or_nothing(path):
    bad = changed(entry("b"), kind=None)
    with Ledger(path) as opened:
        with pytest.raises(LedgerError):
            opened.add([entry("a"), bad])
        assert opened.runs() == []


def test_it_has_a_write_ahead_log(path):
    Ledger(path).__exit__()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("text", ["'; DROP TABLE runs; --", "<script>alert(1)</script>", "\x1b[31mred", "a\0b", "ü☃"])
def test_any_string_is_data(path, text):
    with Ledger(path) as opened:
        opened.add([entry("a", command=[text], culprit=text, host=text, environment={text: text})])
        (back,) = opened.runs()
    assert (back.command, back.culprit, back.host, back.environment) == ([text], text, text, {text: text})


def test_a_row_that_makes_no_sense_is_left_out(path):
    with Ledger(path) as opened:
        opened.add([entry("a"), entry("b"), entry("c")])
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE runs SET command = '[1, {' WHERE id = 'a'")
        connection.execute("UPDATE runs SET steps = 'many' WHERE id = 'b'")
    with Ledger(path) as opened:
        assert [one.id for one in opened.runs()] == ["c"]


_WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, "{tests}")
from makers import entry
from unstall.repeat.ledger import Ledger
for number in range({count}):
    with Ledger(Path({path!r})) as opened:
        opened.add([entry(f"{{sys.argv[1]}}-{{number}}")])
    print(number, flush=True)
"""


def _writer(path, name, count):
    source = _WRITER.format(tests=Path(__file__).parents[2] / "support", path=str(path), count=count)
    return subprocess.Popen([sys.executable, "-c", source, name], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_writers_at_once_lose_nothing(path):
    writers = [_writer(path, name, 15) for name in "abc"]
    for writer in writers:
        _, error = writer.communicate(timeout=60)
        assert writer.returncode == 0, error.decode()
    with Ledger(path) as opened:
        assert len(opened.runs()) == 45


def test_a_killed_writer_corrupts_nothing(path):
    writer = _writer(path, "a", 100_000)
    writer.stdout.readline()
    time.sleep(0.05)
    writer.send_signal(signal.SIGKILL)
    said = writer.communicate(timeout=30)[0].split()
    with Ledger(path) as opened:
        assert len(opened.runs()) >= len(said)  # what was told to be written is there
        opened.add([entry("z")])
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_full_disk_is_told_in_one_line(path):
    with Ledger(path) as opened:
        opened._database._connection.execute("PRAGMA max_page_count = 6")
        with pytest.raises(LedgerError, match=r"full; make room .* unstall prune") as told:
            opened.add([entry(str(number), command=["x" * 4000]) for number in range(9)])
        assert "\n" not in str(told.value)
        assert opened.runs() == []


def test_a_file_that_is_no_ledger_is_told(path):
    path.parent.mkdir()
    path.write_bytes(b"something else" * 100)
    with pytest.raises(LedgerError, match=r"not a database; it is not a ledger.*move it away"):
        Ledger(path)


@pytest.mark.parametrize(
    "damage, said",
    [
        ("UPDATE ledger_version SET version = 'soon'", "an invalid version"),
        ("UPDATE ledger_version SET version = -1", "an invalid version"),
        ("DROP TABLE runs", "no such table: runs; it is not a ledger"),
        ("ALTER TABLE runs DROP COLUMN kind", "no such column: kind; it is not a ledger"),
        ("UPDATE runs SET kind = CAST(x'ff' AS TEXT)", "decode to UTF-8.*it is not a ledger"),
    ],
)
def test_a_ledger_that_is_damaged_is_told(path, damage, said):
    with Ledger(path) as opened:
        opened.add([entry("a")])
    with sqlite3.connect(path) as connection:
        connection.execute(damage)
    with pytest.raises(LedgerError, match=said), Ledger(path) as opened:
        opened.runs()


def test_a_ledger_that_may_not_be_written_is_told(path):
    with Ledger(path) as opened:
        opened._database._connection.execute("PRAGMA query_only = 1")
        with pytest.raises(LedgerError, match=r"readonly.*--ledger"):
            opened.add([entry("a")])


def test_a_ledger_that_is_no_file_is_told(tmp_path):
    """SQLite would leave a journal beside a device: /dev/null-journal."""
    for path in (tmp_path, Path("/dev/null")):
        with pytest.raises(LedgerError, match="it is no file; name another by --ledger"):
            Ledger(path)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_takes_no_file_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match=r"Not a directory|File exists|unable to open"):
        Ledger(tmp_path / "file" / "ledger.sqlite")


def test_a_writer_that_does_not_end_is_waited_for_and_told(path):
    with Ledger(path):
        pass
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with Ledger(path, busy_s=0.2) as opened, pytest.raises(LedgerError, match="another run has been writing"):
        opened.add([entry("a")])
    blocker.close()


def test_an_older_ledger_is_brought_up_to_date(path):
    connection = database.connect(path)
    schema.migrate(connection)
    connection.close()
    with Ledger(path) as opened:
        opened.add([entry("a")])
    newer = (*schema.MIGRATIONS, ("ALTER TABLE runs ADD COLUMN mood TEXT", "UPDATE runs SET mood = 'fine'"))
    connection = database.connect(path)
    schema.migrate(connection, newer)
    schema.migrate(connection, newer)
    with connection.transaction() as looking:
        assert looking.run("SELECT id, mood FROM runs") == [{"id": "a", "mood": "fine"}]
    connection.close()


def test_a_migration_that_fails_changes_nothing(path):
    connection = database.connect(path)
    with pytest.raises(LedgerError):
        schema.migrate(connection, (*schema.MIGRATIONS, ("CREATE TABLE more (x TEXT)", "NO SQL AT ALL")))
    schema.migrate(connection)
    with connection.transaction() as looking:
        assert not looking.run(connection.tables_named, {"name": "more"})
    connection.close()


def test_a_ledger_of_a_newer_unstall_is_left_alone(path):
    connection = database.connect(path)
    schema.migrate(connection, (*schema.MIGRATIONS, ("CREATE TABLE more (x TEXT)",)))
    connection.close()
    with pytest.raises(LedgerError, match="newer unstall"):
        Ledger(path)


def test_the_environment_names_the_ledger(tmp_path, monkeypatch):
    monkeypatch.setenv(environment.LEDGER, str(tmp_path / "team.sqlite"))
    run = tmp_path / ".unstall" / "runs" / "20260102-030405-abcdef"
    ledger.record(report(), run)
    assert [one.id for one in ledger.history(everything=True)] == ["20260102-030405-abcdef"]
    assert not (tmp_path / ".unstall" / "ledger.sqlite").exists()


def test_where_nothing_can_be_written_the_ledger_is_with_the_recordings(tmp_path, monkeypatch):
    monkeypatch.delenv(environment.LEDGER, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    ledger.record(report(), state.fallback() / "runs" / "20260102-030405-abcdef")
    assert ledger.default().parent == state.fallback()
    assert len(ledger.history()) == 1


def test_a_run_is_entered_beside_its_recording(tmp_path, monkeypatch):
    monkeypatch.delenv(environment.LEDGER, raising=False)
    monkeypatch.chdir(tmp_path)
    assert ledger.history() == [] and not state.home().exists()
    ledger.record(report(), state.home() / "runs" / "20260102-030405-abcdef")
    (found,) = ledger.history()
    assert (found.project, found.pattern, found.gap) == (tmp_path.name, "input-bound", 0.5)


def test_a_report_of_another_kind_is_kept_as_runs_are(tmp_path, monkeypatch):
    monkeypatch.delenv(environment.LEDGER, raising=False)
    monkeypatch.chdir(tmp_path)
    assert ledger.keep(report(kind="optimize")) is None
    (found,) = ledger.history()
    assert found.kind == "optimize" and archive.load(found.id).report == report(kind="optimize")
    (state.home() / "ledger.sqlite").write_bytes(b"no database" * 100)
    assert "is not in the history" in ledger.keep(report(kind="optimize"))


def test_an_entry_has_what_history_shows(tmp_path):
    revision = Revision("here", "c0ffee00c0ffee00", "abcdef012345")
    made = entry_of(report(8.0, headroom=4.0), tmp_path, revision)
    assert isinstance(made, Entry)
    assert (made.steps_per_s, made.gap, made.culprit) == (8.0, 0.75, "decode /w/train.py:7")
    assert made.code == "c0ffee00+abcd" and made.program == "train.py"


@pytest.mark.parametrize(
    "url, shown",
    [
        ("postgresql://joe:secret@db/x", "postgresql://joe:***@db/x"),
        ("postgresql://joe@db/x", "postgresql://joe@db/x"),
    ],
)
def test_a_password_is_never_shown(url, shown):
    assert database.without_password(url) == shown


@pytest.mark.parametrize("steps, pattern", [(0, "no-verdict"), (100, "no-verdict"), (100, "unexplained")])
def test_a_run_that_says_nothing_of_its_speed_has_no_gap(steps, pattern):
    given = report(pattern=pattern, headroom=1.0, steps=steps, steps_per_s=10.0 if steps else None)
    row = entry_of(given, Path("/w"), Revision("here"))
    assert (row.pattern, row.gap) == (pattern, None)
    assert row.headroom is None or pattern == "unexplained"

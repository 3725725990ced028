"""The same ledger on a real PostgreSQL server, started for the test on a port of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from changes import changed
from makers import entry, report

from unstall.repeat import database, ledger, schema
from unstall.repeat.database import LedgerError
from unstall.repeat.ledger import Ledger

pytest.importorskip("psycopg")

_SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


def _user():
    """Options that make the server's process an ordinary user's: it refuses to be root's."""
    if os.getuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@pytest.fixture(scope="module")
def server():
    programs = _SERVERS[-1].parent if _SERVERS else None
    if programs is None and shutil.which("initdb"):
        programs = Path(shutil.which("initdb")).parent
    if programs is None:
        pytest.skip("no PostgreSQL server is installed")
    user = _user()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="unstall-pg-") as name:
        data = Path(name) / "data"
        data.mkdir()
        if user:
            os.chmod(name, 0o755)
            os.chown(data, user["user"], user["group"])
        run = {"cwd": data, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **user}
        made = subprocess.run([programs / "initdb", "-D", data, "-U", "team", "-A", "trust", "-N"], **run)
        if made.returncode:
            pytest.skip(f"initdb does not work here: {made.stdout.decode()[-300:]}")
        settings = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": str(data), "fsync": "off"}
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        control = [programs / "pg_ctl", "-D", data, "-w", "-l", data / "log"]
        run["stdout"] = subprocess.DEVNULL  # the server keeps it open
        started = subprocess.run([*control, "-o", options, "start"], **run)
        assert started.returncode == 0, (data / "log").read_text()
        try:
            yield f"postgresql://team@127.0.0.1:{port}/postgres"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **run)


@pytest.fixture
def url(server):
    """The server with an empty ledger."""
    connection = database.connect(server)
    with connection.transaction(write=True) as changing:
        changing.run("DROP TABLE IF EXISTS runs, ledger_version")
    connection.close()
    return server


def test_runs_come_back_oldest_first(url):
    later = entry("b", started="2026-01-03T00:00:00Z", environment={"gpus": [{"name": "'H200'; --"}]})
    with Ledger(url) as opened:
        opened.add([later, entry("a", gap=None)])
        opened.add([later])
        assert opened.runs("here") == [entry("a", gap=None), later]
        assert opened.runs("here", most=1) == [later]


def test_writers_at_once_make_one_ledger_and_lose_nothing(url):
    failures = []

    def write(name):
        try:
            for number in range(10):
                with Ledger(url) as opened:
                    opened.add([entry(f"{name}-{number}")])
        except LedgerError as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    with Ledger(url) as opened:
        assert len(opened.runs()) == 40


def test_all_of_a_transaction_or_nothing(url):
    bad = changed(entry("b"), kind=None)
    with Ledger(url) as opened:
        with pytest.raises(LedgerError, match="null"):
            opened.add([entry("a"), bad])
        assert opened.runs() == []


def test_an_older_ledger_is_brought_up_to_date(url):
    Ledger(url).__exit__()
    connection = database.connect(url)
    schema.migrate(connection, (*schema.MIGRATIONS, ("ALTER TABLE runs ADD COLUMN mood TEXT",)))
    connection.close()
    with pytest.raises(LedgerError, match="newer unstall"):
        Ledger(url)


def test_a_run_enters_and_history_finds_it(url, tmp_path):
    ledger.record(report(), tmp_path, url)
    assert [one.id for one in ledger.history(url)] == [report().run.id]


def test_a_server_that_is_not_there_is_told_without_its_password():
    with pytest.raises(LedgerError, match=r"ledger postgresql://joe:\*\*\*@127") as told:
        Ledger("postgresql://joe:secret@127.0.0.1:1/x")
    assert "secret" not in str(told.value) and "\n" not in str(told.value)


@pytest.mark.parametrize("url", ["nonsense://x", "postgresql://[", "mysql+nothing://a/b"])
def test_a_url_that_is_none_is_told(url):
    with pytest.raises(LedgerError) as told:
        Ledger(url)
    assert "\n" not in str(told.value)

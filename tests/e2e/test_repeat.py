"""The fourth step as a person uses it: runs enter the history, are compared, gated, exported and pruned."""

from __future__ import annotations

import json
import re
import shlex
import signal
import sqlite3
import subprocess
import sys

import pytest

_TRAIN = """
    import sys, time
    import unstall

    pause = float(sys.argv[1]) / 1000 if len(sys.argv) > 1 else 0.002
    for step in unstall.steps(range(60)):
        time.sleep(pause)
    open("log.txt", "a").write("done\\n")
    print("done")
"""


def _unstall(workspace, *words, **kwargs):
    return workspace.start([sys.executable, "-m", "unstall", *words], **kwargs).result()


def _run(workspace, *words, options=(), **kwargs):
    return workspace.watched(*words, options=("--no-sampling", *options), **kwargs)


def _git(workspace, *words):
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", *words]
    return subprocess.run(command, cwd=workspace.folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def program(workspace):
    workspace.write("train.py", _TRAIN)
    return workspace


@pytest.fixture
def repository(program):
    program.write(".gitignore", "log.txt\n")
    _git(program, "init", "-q", "-b", "main")
    _git(program, "add", ".")
    _git(program, "commit", "-q", "-m", "one")
    return program


def _history(workspace):
    return json.loads(_unstall(workspace, "history", "--json", "-").out)


def test_every_run_enters_the_history(repository):
    _run(repository, "train.py", "20")
    _run(repository, "train.py", "2")
    repository.write("train.py", _TRAIN + "    print('more')\n")
    _run(repository, "train.py")
    entries = _history(repository)
    assert [one["command"] for one in entries] == [["train.py", "20"], ["train.py", "2"], ["train.py"]]
    assert entries[0]["revision"] == _git(repository, "rev-parse", "HEAD").strip()
    assert [one["changes"] is None for one in entries] == [True, True, False]
    assert entries[1]["steps_per_s"] > 1.3 * entries[0]["steps_per_s"]
    shown = _unstall(repository, "history").out
    assert shown.count("train.py") == 4
    (bars,) = re.findall("[▁-█]+", shown)
    rates = [one["steps_per_s"] for one in entries]
    assert len(bars) == 3 and bars[rates.index(max(rates))] == "█" and bars[0] < max(bars)
    compared = _unstall(repository, "compare", entries[0]["id"][-6:], entries[1]["id"])
    assert "B is faster than A" in compared.out and "train.py 20 → train.py 2" in compared.out
    same = _unstall(repository, "compare", "last")
    assert same.status == 2 and "A and B are the same run" in same.err
    assert "none of the 3 runs has 'other words' in its command" in _unstall(repository, "history", "other words").err


def test_a_reader_that_goes_away_changes_nothing(program):
    program.write("train.py", _TRAIN + "    sys.exit(3)\n")
    words = shlex.join([sys.executable, "-m", "unstall", "run", "--no-sampling", "train.py"])
    piped = program.start(["bash", "-c", f"{words} |& head -1 > /dev/null; exit ${{PIPESTATUS[0]}}"]).result()
    assert piped.status == 3
    assert len(_history(program)) == 1


def test_runs_at_once_all_enter(program):
    running = [program.start_watched("train.py", options=("--no-sampling",)) for _ in range(4)]
    assert [one.result().status for one in running] == [0] * 4
    assert len(_history(program)) == 4


def test_a_team_ledger_is_named_by_option_or_environment(program):
    team = program.beside / "team.sqlite"
    _run(program, "train.py", options=("--ledger", str(team)))
    _run(program, "train.py", env={"UNSTALL_LEDGER": str(team)})
    assert not (program.state / "ledger.sqlite").exists()
    assert len(json.loads(_unstall(program, "history", "--json", "-", "--ledger", str(team)).out)) == 2


def test_a_ledger_that_fails_harms_neither_run_nor_report(program):
    ledger = program.beside / "ledger.sqlite"
    ledger.write_bytes(b"no database" * 1000)
    plain = program.plain("train.py")
    watched = _run(program, "train.py", options=("--ledger", str(ledger)))
    assert (watched.status, watched.stdout) == (plain.status, plain.stdout)
    assert watched.steps
    assert "this run is not in the history" in watched.err and "Traceback" not in watched.err
    asked = _unstall(program, "history", "--ledger", str(ledger))
    assert asked.status == 2 and "move it away" in asked.err


def test_a_program_that_is_killed_enters_too(program):
    program.write("train.py", _TRAIN + "    import os; os.kill(os.getpid(), 9)\n")
    assert _run(program, "train.py").status == -9
    (entry,) = _history(program)
    assert entry["exit_code"] == -9 and entry["steps"]


@pytest.mark.parametrize(
    "words", [("history",), ("compare",), ("compare", "x", "y"), ("next",), ("export", "--csv", "x.csv")]
)
def test_nothing_yet_is_told_in_one_line(workspace, words):
    result = _unstall(workspace, *words)
    assert result.status == (0 if words == ("history",) else 2)
    assert result.err.startswith("unstall: ") and result.err.count("\n") == 1
    assert not (workspace.beside / "state").exists()


def test_hostile_names_are_data(workspace):
    name = "<script>alert(1)</script>".replace("/", "") + "\x1b[31m'\".py"
    workspace.write(name, _TRAIN)
    _run(workspace, name, "1")
    _run(workspace, name, "1")
    for words in (("history",), ("compare",), ("compare", "--md", "c.md"), ("next",), ("prune", "--dry-run")):
        result = _unstall(workspace, *words)
        assert result.status == 0, result.err
        assert "\x1b" not in result.out
    written = (workspace.folder / "c.md").read_text()
    assert "<script>" not in written and "\x1b" not in written


def test_a_recording_of_somebody_else_is_refused_in_one_line(program):
    _run(program, "train.py")
    (run,) = (program.state / "runs").iterdir()
    (run / "recording.msgpack.gz").write_bytes(b"\x80\x04cos\nsystem\n(S'touch owned'\ntR.")
    for words in (("compare", "last", "last"), ("export", "--csv", "x.csv"), ("next",)):
        result = _unstall(program, *words)
        assert result.status == 2 and "not a recording of a run" in result.err and "Traceback" not in result.err
    assert not (program.folder / "owned").exists()


def test_the_stopping_rule(program):
    _run(program, "train.py")
    other = _unstall(program, "next", "other.py")
    assert other.status == 2 and "no run of other.py yet; there are runs of train.py" in other.err
    answer = json.loads(_unstall(program, "next", "--json", "-", "--price", "2.5/h", "--hours", "100").out)
    assert answer["answer"] == "go on" and answer["savings"]["hours_run"] == 100
    assert "not yet good enough" in _unstall(program, "next", "--price", "2.5/h").out
    _unstall(program, "prune", "--keep", "0")
    gone = _unstall(program, "next")
    assert gone.status == 2 and "the recording of the last run was removed" in gone.err


def test_prune_removes_recordings_and_keeps_the_history(program):
    for _ in range(3):
        _run(program, "train.py", "1")
    runs = program.state / "runs"
    assert "would remove 2 of 3" in _unstall(program, "prune", "--keep", "1", "--dry-run").out
    assert len(list(runs.iterdir())) == 3
    assert "removed 2 of 3" in _unstall(program, "prune", "--keep", "1").out
    assert [path.name for path in runs.iterdir()] == [_history(program)[-1]["id"]]
    assert len(_history(program)) == 3


def test_exports(program):
    _run(program, "train.py")
    result = _unstall(program, "export", "last", "--csv", "steps.csv", "--prometheus", "unstall.prom")
    assert result.status == 0, result.err
    assert len((program.folder / "steps.csv").read_text().splitlines()) > 50
    assert "unstall_steps_per_second" in (program.folder / "unstall.prom").read_text()
    failed = _unstall(program, "export", "--csv", "none/steps.csv", "--prometheus", ".", "--parquet", "steps.parquet")
    assert failed.status == 1 and "No such file" in failed.err and "unstall: .: " in failed.err
    assert "Traceback" not in failed.err and failed.out == "exported to steps.parquet\n"


def _gate(repository, *words, options=()):
    fast = ("--steps", "20", "--no-sandbox", "--baseline", "main")
    return _unstall(repository, "gate", *fast, *options, *words)


def _slower(repository):
    repository.write("train.py", _TRAIN.replace("/ 1000", "/ 500"))


def test_the_gate_lets_the_same_code_pass_and_refuses_a_slower_one(repository):
    """Allowed is much, and steps are long beside what a core is waited for: so a busy machine decides neither."""
    same = _gate(repository, "train.py", "10", options=("--max-regression", "30%"))
    assert same.status == 0, same.out + same.err
    _slower(repository)
    answer = repository.beside / "gate.json"
    options = ("--max-regression", "30%", "--json", answer, "--md", "gate.md")
    slower = _gate(repository, "train.py", "10", options=options)
    assert slower.status == 1, slower.out + slower.err
    found = json.loads(answer.read_text())
    assert found["decision"] == "regression" and found["slowdown"]["value"] > 1.3
    assert found["candidate"].endswith("with uncommitted changes")
    assert "regression" in (repository.folder / "gate.md").read_text()
    assert len(_git(repository, "worktree", "list").splitlines()) == 1
    assert not (repository.state / "runs").exists()


def test_the_gate_against_a_recorded_run(repository):
    _run(repository, "train.py", "10")
    _slower(repository)
    result = _gate(repository, "train.py", "10", options=("--baseline", "last", "--max-regression", "30%"))
    assert result.status == 1, result.out + result.err
    assert "one recorded run" in result.out


def test_the_gates_runs_leave_the_users_files_as_they_are(repository):
    result = _unstall(repository, "gate", "--baseline", "main", "--steps", "20", "--pairs", "3", "train.py")
    if "can keep an experiment from changing your files" in result.err:
        pytest.skip("no sandbox can be had here")
    assert "Pairs" in result.out, result.err
    assert not (repository.folder / "log.txt").exists()


@pytest.mark.parametrize(
    "words, said",
    [
        (("nope.py",), "no such file: nope.py"),
        (("train.py", "fast"), "ended with exit code 1"),
        (("idle.py",), "took no steps that could be measured"),
    ],
)
def test_a_gate_that_cannot_be_held_says_why(repository, words, said):
    repository.write("idle.py", "print('nothing')")
    _git(repository, "add", ".")
    _git(repository, "commit", "-q", "-m", "two")
    result = _gate(repository, *words)
    assert result.status == 2 and said in result.err and "Traceback" not in result.err.replace("| Traceback", "")


def test_a_program_that_only_the_candidate_has_is_told(repository):
    repository.write("new.py", _TRAIN)
    result = _gate(repository, "new.py")
    assert result.status == 2 and "git does not know new.py" in result.err
    _git(repository, "checkout", "-q", "-b", "topic")
    _git(repository, "add", ".")
    _git(repository, "commit", "-q", "-m", "two")
    result = _gate(repository, "new.py", options=("--md", "gate.md"))
    assert result.status == 2 and "has no new.py" in result.err
    assert "has no new.py" in (repository.folder / "gate.md").read_text()


def test_a_gate_that_nobody_reads_does_not_end_as_a_regression(repository):
    _run(repository, "train.py")
    words = ["gate", "--baseline", "last", "--steps", "20", "--pairs", "3", "--no-sandbox", "--max-regression", "90%"]
    gate = shlex.join([sys.executable, "-m", "unstall", *words, "train.py"])
    piped = repository.start(["bash", "-c", f"{gate} | true; exit ${{PIPESTATUS[0]}}"]).result()
    assert piped.status == 0, piped.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_gate_that_is_interrupted_leaves_nothing(repository, number):
    words = [sys.executable, "-m", "unstall", "gate", "--baseline", "main", "--no-sandbox", "train.py", "10"]
    running = repository.start(["bash", "-c", f"exec {shlex.join(words)} 2>&1"])
    running.wait_for("pair 1")
    running.signal(number)
    result = running.result()
    assert result.status == 130 and "Traceback" not in result.out
    assert len(_git(repository, "worktree", "list").splitlines()) == 1
    assert not (repository.state / "runs").exists()


def test_a_gate_without_such_a_baseline_says_so(repository):
    result = _unstall(repository, "gate", "--baseline", "nope", "--no-sandbox", "train.py")
    assert result.status == 2 and "no revision and no recorded run is called 'nope'" in result.err


def test_a_ledger_that_was_begun_by_a_killed_run_still_works(program):
    _run(program, "train.py")
    connection = sqlite3.connect(program.state / "ledger.sqlite", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE runs SET kind = 'half'")
    connection.close()  # without a commit
    _run(program, "train.py")
    assert [one["kind"] for one in _history(program)] == ["run", "run"]

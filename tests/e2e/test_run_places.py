"""Wherever a program runs: full disks, read-only folders, odd names, two at once in one place."""

import os
import sys

import pytest
from harness import assert_same
from programs import SLOW_DATASET

PROGRAM = """
    import sys

    from tiny import training

    for step, loss in training(int(sys.argv[1])):
        print(step, loss.hex())
"""
_READ_ONLY = 'mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"'
_SMALL = 'mkdir "$0"; mount -t tmpfs -o size={size} tmpfs "$0"'


def test_a_full_disk_for_the_recording(workspace, namespace):
    workspace.write("program.py", PROGRAM)
    plain = workspace.plain("program.py", "60")
    small = namespace(_SMALL.format(size="1m"), workspace.folder / ".unstall")
    watched = workspace.watched("program.py", "60", wrapper=small, env={"TMPDIR": str(workspace.beside)})
    assert_same(plain, watched)
    assert watched.steps >= 1
    assert "No space left on device" in watched.notes
    assert list(workspace.beside.glob("unstall-*/work-*/runs/*/report.json"))
    assert f"{workspace.folder / '.unstall'} cannot hold the recording" in watched.notes


def test_no_place_at_all_for_the_recording(workspace, namespace):
    workspace.write("program.py", PROGRAM)
    small = namespace(_SMALL.format(size="1m"), workspace.folder / ".unstall")
    environment = {"TMPDIR": str(workspace.folder / ".unstall")}
    plain = workspace.plain("program.py", "60")
    result = workspace.watched("program.py", "60", wrapper=small, env=environment)
    assert result.status == 0 and result.stdout == plain.stdout
    assert result.err.startswith("unstall: cannot write the recording")
    assert result.err.count("\n") == 1 and "there is no report" in result.err


@pytest.mark.parametrize(
    "ending", ["sys.exit(3)", "os.kill(os.getpid(), signal.SIGTERM)", "sys.stdout.write('x' * 9**7)"]
)
def test_a_limit_of_file_sizes_below_the_recordings(workspace, ending):
    """`ulimit -f` holds for the program too, which ends by SIGXFSZ where it exceeds it itself."""
    workspace.write("program.py", f"import os, signal, sys\nprint('began', flush=True)\n{ending}\n")
    limited = ["bash", "-c", 'ulimit -f 100; exec "$@"', "limited"]
    plain = workspace.plain("program.py", wrapper=limited)
    result = workspace.watched("program.py", wrapper=limited)
    assert result.status == plain.status and result.stdout == plain.stdout
    assert result.err.startswith("unstall: cannot write the recording") and "File too large" in result.err
    assert result.err.partition("\n")[2] == plain.err


def test_the_disk_fills_up_meanwhile(workspace, namespace):
    workspace.write(
        "program.py",
        """
        from tiny import training

        import unstall

        for step, loss in training(60):
            if step == 30:
                for _ in range(300_000):  # 14 MB of records
                    with unstall.span("tick"):
                        pass
            print(step, loss.hex())
        """,
    )
    plain = workspace.plain("program.py")
    small = namespace(_SMALL.format(size="6m"), workspace.folder / ".unstall")
    watched = workspace.watched("program.py", wrapper=small)
    assert_same(plain, watched)
    assert 1 <= watched.steps <= 30
    assert "the disk accepted no more" in watched.notes


def test_a_read_only_working_directory(workspace, namespace):
    workspace.write("program.py", PROGRAM)
    plain = workspace.plain("program.py", "60")
    watched = workspace.watched("program.py", "60", wrapper=namespace(_READ_ONLY, workspace.folder))
    assert_same(plain, watched)
    assert watched.steps >= 1
    assert [run.name for run in (workspace.state / "runs").iterdir()] == [watched.report["run"]["id"]]


def test_a_read_only_home(workspace, namespace):
    """The temporary folder stands in, and every verb finds the run there."""
    workspace.write("program.py", PROGRAM)
    state = workspace.beside / "state"
    state.mkdir()
    places = {"wrapper": namespace(_READ_ONLY, state), "env": {"TMPDIR": str(workspace.beside)}}
    watched = workspace.watched("program.py", "60", **places)
    assert watched.steps >= 1
    assert "Read-only file system" in watched.notes and "it went to" in watched.notes
    for verb in ("history", "report"):
        words = [*places["wrapper"], sys.executable, "-m", "unstall", verb, "--json", "-"]
        assert watched.report["run"]["id"] in workspace.start(words, env=places["env"]).result().out
    assert list(state.iterdir()) == []


def test_a_path_with_spaces_and_other_alphabets(workspace):
    folder = "mes données; 数据 (v2)"
    workspace.write(f"{folder}/entraîner le modèle.py", SLOW_DATASET + "\n    print(__file__, sys.argv)\n")
    script = f"{folder}/entraîner le modèle.py"
    _, watched = workspace.both(script, "0")
    culprit = watched.report["verdict"]["culprit"]
    assert culprit["function"] == "Slow.__getitem__"
    assert culprit["file"] == str(workspace.folder / script)
    assert watched.report["run"]["command"] == [script, "0"]


def test_arguments_that_are_no_text(workspace):
    workspace.write("program.py", "import os, sys\nprint([os.fsencode(word) for word in sys.argv])")
    _, watched = workspace.both("program.py", "--name", "two words", "", os.fsdecode(b"\xff.pt"), "--", "-x", "--steps")
    assert watched.steps == 0


def test_two_runs_at_once_in_one_directory(workspace):
    workspace.write("program.py", PROGRAM)
    few, many = (
        workspace.start_watched("program.py", steps, options=["--no-sampling"], stdin=b"") for steps in ("20", "120")
    )
    few, many = few.result(), many.result()
    assert (few.status, many.status) == (0, 0)
    assert (len(few.out.splitlines()), len(many.out.splitlines())) == (20, 120)
    assert few.report["run"]["id"] != many.report["run"]["id"]
    assert few.steps < 20 < many.steps < 120
    runs = {path.name for path in (workspace.state / "runs").iterdir()}
    assert runs == {few.report["run"]["id"], many.report["run"]["id"]}


def test_a_program_that_changes_its_working_directory(workspace):
    (workspace.folder / "elsewhere").mkdir()
    workspace.write(
        "program.py",
        """
        import os

        from tiny import training

        for step, loss in training(400):
            if step == 10:
                os.chdir("elsewhere")
            print(step, loss.hex(), os.getcwd())
        """,
    )
    _, watched = workspace.both("program.py")
    assert watched.steps > 10
    assert list((workspace.folder / "elsewhere").iterdir()) == []


def test_a_program_that_closes_files_it_did_not_open(workspace):
    workspace.write(
        "program.py",
        """
        import os

        from tiny import training

        files = []
        for step, loss in training(90):
            if step == 20:
                os.closerange(3, 4096)
                files = [open(f"metrics-{i}.txt", "w+") for i in range(8)]
            for file in files:
                print(step, loss.hex(), file=file, flush=True)
        for file in files:
            file.seek(0)
            print(file.read())
        """,
    )
    plain = workspace.plain("program.py")
    watched = workspace.watched("program.py", options=["--no-sampling"])
    assert_same(plain, watched)
    assert watched.steps + watched.report["run"]["warmup_steps"] > 30


def test_nothing_is_left_in_the_working_directory(workspace):
    workspace.write("program.py", PROGRAM)
    before = set(workspace.folder.iterdir())
    watched = workspace.watched("program.py", "60")
    assert watched.status == 0
    assert set(workspace.folder.iterdir()) == before
    left = {path.name for path in workspace.state.rglob("*") if path.is_file()}
    assert left == {".gitignore", "report.json", "recording.msgpack.gz", "ledger.sqlite"}


def test_a_program_that_looks_about_finds_nothing_of_unstalls(workspace):
    """A dataset that takes each folder for a class, each JSON file for a label."""
    workspace.write("program.py", "from pathlib import Path\nprint(sorted(map(str, Path().rglob('*'))))\n")
    workspace.both("program.py")
    workspace.both("program.py")  # the first run is kept by now


def test_a_folder_of_the_project_that_is_there_or_asked_for_is_used(workspace):
    workspace.write("program.py", PROGRAM)
    asked = workspace.watched("program.py", "60", env={"UNSTALL_STATE": ".unstall"})
    there = workspace.watched("program.py", "60")
    runs = {path.name for path in (workspace.folder / ".unstall" / "runs").iterdir()}
    assert runs == {asked.report["run"]["id"], there.report["run"]["id"]}
    assert (workspace.folder / ".unstall" / ".gitignore").read_text() == "*\n"
    assert not (workspace.beside / "state").exists()


def test_it_runs_without_a_home_or_a_path(workspace):
    """As services and minimal containers run things."""
    workspace.write("program.py", PROGRAM)
    watched = workspace.watched(
        "program.py",
        "60",
        wrapper=["env", "-u", "HOME", "-u", "PATH", "-u", "TERM"],
        unstall=[sys.executable, "-m", "unstall", "run"],
    )
    assert watched.status == 0
    assert watched.steps >= 1

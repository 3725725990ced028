"""However a program ends, it ends as it would have ended by itself, and what ran is reported."""

import signal

import pytest
from harness import further_in_long
from programs import SLOW_DATASET

MISSING = [
    (["nowhere.py"], "no such file: nowhere.py"),
    (["folder/nowhere"], "no such file: folder/nowhere"),
    (["nosuchprogram"], "neither a file nor a program"),
    (["empty"], "without a __main__.py"),
    (["-m"], "-m needs the name of a module"),
    (["--frobnicate", "train.py"], "no such option: --frobnicate"),
    ([], "nothing to run"),
]


@pytest.mark.parametrize(("words", "message"), MISSING, ids=[" ".join(words) or "nothing" for words, _ in MISSING])
def test_what_cannot_be_started_is_told_in_one_line(workspace, words, message):
    (workspace.folder / "empty").mkdir()
    before = sorted(workspace.folder.iterdir())
    result = workspace.watched(*words)
    assert result.status == 2
    assert message in result.err
    assert result.err.startswith("unstall: ")
    assert result.err.count("\n") == 1
    assert result.stdout == b""
    assert result.report_bytes is None
    assert sorted(workspace.folder.iterdir()) == before


def test_a_report_that_could_not_be_written_is_told_before_the_program_runs(workspace):
    workspace.write("program.py", "print('ran')")
    result = workspace.watched("program.py", options=["--markdown", "nowhere/report.md"])
    assert result.status == 2
    assert result.err.startswith("unstall: cannot write nowhere/report.md")
    assert result.err.count("\n") == 1
    assert result.stdout == b""


ENDINGS = {
    "raise": "check(loss)",
    "exit 3": "sys.exit(3)",
    "exit with a message": "sys.exit('no more data')",
    "exit nothing": "raise SystemExit",
    "leave at once": "os._exit(4)",
    "abort": "os.abort()",
    "crash": "os.kill(os.getpid(), signal.SIGSEGV)",
    "be killed": "os.kill(os.getpid(), signal.SIGKILL)",
}
FURTHER = ("exit with a message", "exit nothing", "abort")
"""Cases of what others show too."""


@pytest.mark.parametrize("ending", further_in_long(ENDINGS, FURTHER))
def test_the_program_ends_as_without_unstall(workspace, ending):
    workspace.write(
        "program.py",
        f"""
        import os
        import resource
        import signal
        import sys

        from tiny import training

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


        def check(loss):
            raise ValueError(f"loss is {{loss:.6f}}")


        for step, loss in training(60):
            print(step, loss.hex(), flush=True)
            if step == 40:
                {ENDINGS[ending]}
        """,
    )
    plain, watched = workspace.both("program.py")
    assert plain.status != 0 or ending == "exit nothing"
    assert watched.report["run"]["exit_code"] == plain.status
    assert 1 <= watched.steps <= 41


def test_a_killed_programs_workers_are_not_left_behind(workspace):
    workspace.write(
        "program.py",
        """
        import os
        import signal

        import slow

        original = slow.torch.optim.SGD.step
        calls = []


        def step(self, *args):
            calls.append(1)
            if len(calls) == 20:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(self, *args)


        slow.torch.optim.SGD.step = step
        slow.main(workers=2)
        """,
    )
    workspace.write("slow.py", SLOW_DATASET)
    result = workspace.watched("program.py")
    assert result.status == -signal.SIGKILL
    assert result.steps >= 1


def test_a_loader_workers_death_is_the_loaders_own_error(workspace):
    workspace.write(
        "program.py",
        """
        import os
        import signal

        import slow


        class Deadly(slow.Slow):
            def __getitem__(self, index):
                if index == 120:
                    slow.time.sleep(1)  # until all that this worker has made is taken from it
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().__getitem__(index)


        slow.Slow = Deadly
        slow.main(workers=2)
        """,
    )
    workspace.write("slow.py", SLOW_DATASET)
    result = workspace.watched("program.py")
    assert result.status == 1
    assert "RuntimeError: DataLoader worker (pid" in result.err
    assert "Killed" in result.err
    assert "unstall/benchmark" not in result.err
    assert result.report["run"]["exit_code"] == 1
    assert result.steps >= 1

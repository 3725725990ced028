"""Signals from a terminal, from `kill` and from `timeout`: the program gets each once, and ends by it as ever."""

import os
import pty
import signal
import time

import pytest
from harness import UNSTALL
from programs import SLOW_DATASET

HANDLES = """
    import signal
    import sys
    import time

    from tiny import training


    def on_signal(number, frame):
        print("saved on", number, flush=True)
        time.sleep(0.7)  # a second one would come in now
        sys.exit(7)


    if "--handle" in sys.argv:
        signal.signal(signal.SIGTERM, on_signal)
    try:
        for step, loss in training(10_000):
            if step == 30:
                print("ready", flush=True)
    except KeyboardInterrupt:
        if "--handle" not in sys.argv:
            raise
        on_signal(signal.SIGINT, None)
"""


@pytest.mark.parametrize("group", [True, False], ids=["to the group", "to unstall alone"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_the_programs_own_handler_runs_once(workspace, number, group):
    workspace.write("program.py", HANDLES)
    running = workspace.start_watched("program.py", "--handle")
    running.wait_for("ready")
    running.signal(number, group=group)
    result = running.result()
    assert result.out == f"ready\nsaved on {int(number)}\n"
    assert result.status == 7
    assert result.report["run"]["exit_code"] == 7
    assert result.steps >= 1


@pytest.mark.parametrize(
    ("number", "group"),
    [(signal.SIGINT, True), (signal.SIGINT, False), (signal.SIGTERM, False)],
    ids=["Ctrl-C", "SIGINT to unstall alone", "SIGTERM to unstall alone"],
)
def test_without_a_handler_it_ends_by_the_signal(workspace, number, group):
    workspace.write("program.py", HANDLES)
    running = workspace.start_watched("program.py")
    running.wait_for("ready")
    running.signal(number, group=group)
    result = running.result()
    assert result.status == -number
    assert result.err.count("Traceback") == (number == signal.SIGINT)
    assert result.err.count("\nKeyboardInterrupt\n") == (number == signal.SIGINT)
    assert result.report["run"]["exit_code"] == -number
    assert result.steps >= 1


def test_ctrl_c_with_loader_workers(workspace):
    workspace.write("slow.py", SLOW_DATASET)
    workspace.write(
        "program.py",
        """
        import slow

        original = slow.torch.optim.SGD.step
        calls = []


        def step(self, *args):
            calls.append(1)
            if len(calls) == 20:
                print("ready", flush=True)
            return original(self, *args)


        slow.torch.optim.SGD.step = step
        slow.main(workers=2, items=100_000)
        """,
    )
    running = workspace.start_watched("program.py")
    running.wait_for("ready")
    running.signal(signal.SIGINT, group=True)
    result = running.result()
    assert result.status == -signal.SIGINT
    assert result.steps >= 1


def test_ctrl_c_typed_in_a_terminal(workspace):
    """The terminal stays the program's: it sees one, its lines stand in it as written, Ctrl-C reaches it once."""
    workspace.write("program.py", HANDLES.replace("    try:", "    assert sys.stdout.isatty()\n    try:", 1))
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(workspace.folder)
        os.execv(UNSTALL[0], [*UNSTALL, "program.py", "--handle"])
    output = b""
    try:
        while b"ready\r\n" not in output:
            output += os.read(terminal, 4096)
        time.sleep(0.5)  # meanwhile progress is shown
        os.write(terminal, b"\x03")
        while read := os.read(terminal, 4096):
            output += read
    except OSError:
        pass  # how a terminal says that nobody is left at its other end
    finally:
        os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 7, output.decode()
    assert output.count(b"saved on 2\r\n") == 1
    assert b"steps measured" in output

"""Signals from a terminal, `kill`, `timeout` or a scheduler: the program gets each once, and ends by it as ever."""

import os
import pty
import signal
import sys
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


@pytest.mark.parametrize(
    ("number", "group"),
    [
        pytest.param(signal.SIGINT, True, id="SIGINT to the group"),
        pytest.param(signal.SIGTERM, False, id="SIGTERM to unstall alone"),
        pytest.param(signal.SIGINT, False, id="SIGINT to unstall alone", marks=pytest.mark.long),
        pytest.param(signal.SIGTERM, True, id="SIGTERM to the group", marks=pytest.mark.long),
    ],
)
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
    written = output.replace(b"^C", b"")  # the terminal's own, which it may put into a line of the program's
    assert written.count(b"saved on 2\r\n") == 1, output.decode()
    assert b"steps measured" in output


COUNTS = """
    import os
    import signal
    import sys
    import time

    count = {}


    def on_signal(number, frame):
        count[number] = count.get(number, 0) + 1
        os.write(1, f"got {int(number)} x{count[number]}\\n".encode())  # at once: the next signal may come in a print


    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        signal.signal(number, on_signal)
    print("ready", flush=True)
    while signal.SIGTERM not in count:
        time.sleep(0.01)
    time.sleep(0.3)  # one more of it would come in now
    sys.exit(sum(count.values()) % 100)
"""
SENT = sorted(
    number
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGTERM}
    if number <= signal.SIGRTMIN or number == signal.SIGRTMAX
)


@pytest.mark.parametrize("group", [True, False], ids=["to the group", "to unstall alone"])
def test_every_signal_reaches_the_program_once(workspace, group):
    workspace.write("program.py", COUNTS)
    running = workspace.start_watched("program.py", options=["--no-sampling"])
    running.wait_for("ready")
    for number in [*SENT, signal.SIGTERM]:
        running.signal(number, group=group)
        running.wait_for(f"got {int(number)} x1")
    result = running.result()
    assert sorted(result.out.splitlines()) == sorted(["ready", *(f"got {int(n)} x1" for n in [*SENT, signal.SIGTERM])])
    assert result.status == (len(SENT) + 1) % 100


def test_signals_that_queue_are_not_counted_together(workspace):
    workspace.write(
        "program.py",
        """
        import signal

        queued = {signal.SIGRTMIN + 1, signal.SIGTERM}
        signal.pthread_sigmask(signal.SIG_BLOCK, queued)
        print("ready", flush=True)
        while (number := signal.sigwait(queued)) != signal.SIGTERM:
            print("queued", flush=True)
        while signal.sigtimedwait({signal.SIGRTMIN + 1}, 0.5):
            print("queued", flush=True)
        """,
    )
    running = workspace.start_watched("program.py", options=["--no-sampling"])
    running.wait_for("ready")
    for number in [signal.SIGRTMIN + 1] * 5 + [signal.SIGTERM]:
        running.signal(number)
    assert running.result().out == "ready\n" + 5 * "queued\n"


ENDED_BY = ["SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGHUP", "SIGALRM", "SIGABRT", "SIGSEGV", "SIGPIPE", "SIGRTMIN"]


def test_without_a_handler_every_signal_ends_it_as_ever(workspace):
    """A program in which nothing is handled or ignored, as Python handles and ignores some."""
    workspace.write("program.sh", "#!/bin/sh\nulimit -c 0\necho ready\nexec sleep 60\n").chmod(0o755)
    started = [workspace.start_watched("./program.sh", options=["--no-sampling"]) for _ in ENDED_BY]
    for name, running in zip(ENDED_BY, started):
        running.wait_for("ready")
        running.signal(getattr(signal, name))
    ended = {name: running.result().status for name, running in zip(ENDED_BY, started)}
    assert ended == {name: -getattr(signal, name) for name in ENDED_BY}


@pytest.mark.parametrize("handles", [False, True], ids=["as started", "handled after all"])
def test_what_was_ignored_from_the_start(workspace, handles):
    """As nohup ignores SIGHUP, and a shell that has no job control SIGINT and SIGQUIT in the background."""
    workspace.write(
        "program.py",
        f"""
        import signal
        import sys
        import time

        if {handles}:
            signal.signal(signal.SIGHUP, lambda *_: print("handled", flush=True))
        print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, flush=True)
        print("ready", flush=True)
        time.sleep(1)
        """,
    )
    running = workspace.start_watched("program.py", options=["--no-sampling"], wrapper=["nohup"])
    running.wait_for("ready")
    running.signal(signal.SIGHUP)
    result = running.result()
    assert result.out == ("False\nready\nhandled\n" if handles else "True\nready\n")
    assert result.status == 0


def test_a_checkpoint_at_the_schedulers_word(workspace):
    workspace.write(
        "program.py",
        """
        import signal
        import sys

        from tiny import training

        asked = []
        signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
        for step, loss in training(2000):
            if step == 30:
                print("ready", flush=True)
            if asked:
                open("checkpoint", "w").write(str(step))
                sys.exit(99)
        """,
    )
    running = workspace.start_watched("program.py")
    running.wait_for("ready")
    running.signal(signal.SIGUSR1)
    result = running.result()
    assert (result.status, result.report["run"]["exit_code"]) == (99, 99)
    assert (workspace.folder / "checkpoint").exists()


def test_ctrl_c_while_the_collector_runs(workspace):
    workspace.write(
        "program.py",
        """
        import gc
        import time

        heap = [[number] for number in range(1_000_000)]
        print("ready", flush=True)
        try:
            end = time.monotonic() + 10
            while time.monotonic() < end:
                gc.collect()
            print("lost")
        except KeyboardInterrupt:
            print("interrupted")
        """,
    )
    running = workspace.start_watched("program.py", options=["--no-sampling"])
    running.wait_for("ready")
    running.signal(signal.SIGINT, group=True)
    assert running.result().out == "ready\ninterrupted\n"


SHELL = """
    import os
    import signal
    import subprocess
    import sys
    import time

    # A shell with job control: its jobs are process groups of its own session.
    number, to_group, *command = sys.argv[1:]
    job = subprocess.Popen(command, preexec_fn=os.setpgrp, stdout=subprocess.PIPE, text=True)
    send = os.killpg if to_group == "group" else os.kill
    while job.stdout.readline() != "ready\\n":
        pass
    send(job.pid, int(number))
    _, status = os.waitpid(job.pid, os.WUNTRACED)
    print("stopped by", os.WIFSTOPPED(status) and os.WSTOPSIG(status), flush=True)
    time.sleep(0.2)
    send(job.pid, signal.SIGCONT)
    print(job.stdout.read(), end="")
    print("ended", job.wait())
"""


@pytest.mark.parametrize("program", ["stops", "tidies up and stops"])
@pytest.mark.parametrize("target", ["group", "alone"])
def test_job_control(workspace, program, target):
    workspace.write("shell.py", SHELL)
    workspace.write(
        "program.py",
        f"""
        import os
        import signal
        import time


        def tidy_up(number, frame):
            time.sleep(0.3)
            print("tidy", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)


        if {program != "stops"}:
            signal.signal(signal.SIGTSTP, tidy_up)
        signal.signal(signal.SIGCONT, lambda *_: print("continued", flush=True))
        longest = 0
        last = time.monotonic()
        print("ready", flush=True)
        for turn in range(100):
            time.sleep(0.01)
            longest = max(longest, time.monotonic() - last)
            last = time.monotonic()
        print("stood still", longest > 0.15)
        """,
    )
    words = ["shell.py", str(int(signal.SIGTSTP)), target]
    plain = workspace.plain(*words, sys.executable, "program.py")
    command = [sys.executable, "-m", "unstall", "run", "--no-sampling", "program.py"]
    watched = workspace.plain(*words, *command)
    assert watched.out == plain.out
    assert "continued\nstood still True\nended 0" in plain.out

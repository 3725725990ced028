"""`unstall watch` beside a run: it shows it, leaves it alone, and ends with it."""

import sys

PROGRAM = """
    import sys
    import time

    from tiny import training

    for step, loss in training(int(sys.argv[1]), pause=0.01):
        if step == 20:
            print("going", flush=True)
    print("done", loss.hex())
"""
WATCH = (sys.executable, "-m", "unstall", "watch")
IN_TERMINAL = (sys.executable, "-c", "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)")


def test_it_follows_a_run_to_its_end_without_disturbing_it(workspace):
    workspace.write("program.py", PROGRAM)
    plain = workspace.plain("program.py", "700")
    running = workspace.start_watched("program.py", "700")
    running.wait_for("going")
    once = workspace.start([*WATCH, "--once"]).result()
    live = workspace.start([*IN_TERMINAL, *WATCH], env={"TERM": "xterm", "COLUMNS": "100", "LINES": "40"})
    followed = workspace.start(WATCH).result()
    live = live.result()
    watched = running.result()
    assert watched.stdout == plain.stdout and watched.status == 0
    assert once.status == 0
    assert "steps" in once.out and "forward" in once.out and "main process" in once.out
    assert followed.status == 0
    assert "the run has ended: " in followed.out and "unstall report" in followed.out
    assert "steps/s" in followed.out
    assert live.status == 0
    assert "unstall watch" in live.out and "forward" in live.out and "the run has ended: " in live.out


def test_there_is_nothing_to_watch(workspace):
    result = workspace.start(WATCH).result()
    assert (result.status, result.out) == (2, "")
    assert result.err == (
        "unstall: no run is in progress here; start one in another terminal with: unstall run train.py\n"
    )


def test_a_run_that_has_ended(workspace):
    workspace.write("program.py", PROGRAM)
    workspace.watched("program.py", "30")
    result = workspace.start([*WATCH, "last"]).result()
    assert result.status == 2
    assert "has ended; see it with: unstall report" in result.err


def test_a_killed_program_ends_the_watching(workspace):
    workspace.write("program.py", PROGRAM)
    running = workspace.start_watched("program.py", "100000")
    running.wait_for("going")
    watching = workspace.start(WATCH)
    running.signal(2, group=True)
    running.result()
    followed = watching.result()
    assert followed.status == 0 or "no run is in progress" in followed.err

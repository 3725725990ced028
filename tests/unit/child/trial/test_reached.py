"""What a change brought and which of it is reached, in a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

from unstall.benchmark.launcher import BOOTSTRAP
from unstall.prove.lines.calls import counted_in
from unstall.prove.lines.reached import LOST, loop_lines_in, places_in

PROGRAM = """
    import _thread, os, sys, threading

    KNOWN = {"1": "one"}

    def look_up(word):
        return KNOWN.get(word) or compute(word)

    def compute(word):
        return word * 2

    def in_a_thread():
        print("thread")

    def in_a_bare_thread(lock):
        lock.release()

    def in_a_child():
        print("child")

    print(look_up(sys.argv[1]))
    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
    lock = _thread.allocate_lock()
    lock.acquire()
    _thread.start_new_thread(in_a_bare_thread, (lock,))
    lock.acquire()
    if hasattr(os, "fork"):
        child = os.fork()
        if not child:
            in_a_child()
            os._exit(0)
        os.waitpid(child, 0)
    made = {}
    exec("def made_here(): return 3", made)
    made["made_here"]()
    if sys.argv[1] == "debugged":
        import bdb
        bdb.Bdb().runcall(int)
"""


@pytest.fixture
def follow(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM).lstrip())

    def run(*arguments, lines=(6,)):
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        for name in ("reached.jsonl", "calls.json"):
            (folder / name).unlink(missing_ok=True)
        env = {
            **os.environ,
            "PYTHONPATH": str(BOOTSTRAP),
            "UNSTALL_RUN_DIR": str(folder),
            "UNSTALL_CHILD": "unstall.child.trial",
            "UNSTALL_PLAN": json.dumps({"reached": {"files": {str(script): [*lines]}}}),
        }
        # By a relative path: so most programs are started.
        done = subprocess.run(
            [sys.executable, "program.py", *arguments], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0 and not done.stderr and not list(folder.glob("complaints*"))
        return done.stdout, places_in(folder / "reached.jsonl"), counted_in(folder / "calls.json")[0]

    return run


def test_functions_are_noted_in_every_thread_and_child_and_where_they_are_made(follow):
    _, places, _ = follow("2")
    assert {place.function for place in places if place.offset < 0} == {
        "<module>", "look_up", "compute", "in_a_thread", "in_a_bare_thread", "in_a_child", "made_here"
    }  # fmt: skip


def test_two_ways_through_one_line_are_told_apart(follow):
    (first, known, _), (second, computed, _) = follow("1"), follow("2")
    assert first.startswith("one\n") and second.startswith("22\n")
    in_line = [
        {place.offset for place in places if place.line == 6 and place.offset >= 0} for places in (known, computed)
    ]
    assert in_line[0] < in_line[1]
    assert follow("2")[1] == computed


def test_only_lines_of_the_change_are_followed_by_instructions(follow):
    _, places, _ = follow("2", lines=[9])
    in_program = {place.line for place in places if place.offset >= 0 and not place.path.startswith("<")}
    assert in_program == {9}


def test_code_that_is_made_at_run_time_is_followed_by_instructions(follow):
    _, places, _ = follow("2")
    assert {place.path for place in places if place.function == "made_here" and place.offset >= 0} == {"<string>"}


@pytest.mark.skipif(hasattr(sys, "monitoring"), reason="nothing but sys.monitoring ends it there")
def test_what_ends_the_following_is_noted(follow):
    assert LOST in follow("debugged")[1] and LOST not in follow("2")[1]


def test_calls_of_the_first_process_are_counted_to_its_end(follow):
    calls = [{function.name: count for function, count in follow(word)[2].items()} for word in ("1", "2")]
    assert calls[0]["look_up"] == calls[1]["look_up"] == 1
    assert "compute" not in calls[0] and calls[1]["compute"] == 1
    assert "in_a_child" not in calls[1] and calls[1]["in_a_thread"] == 1


HOOKED = """
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters())

    def hooked(*given):
        pass

    def once(*given):
        pass

    for step in range(40):
        model.register_forward_hook(hooked)
        once()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
"""


@pytest.mark.timeout(240)
def test_calls_are_counted_in_each_quarter_of_the_steps(tmp_path, follow):
    (tmp_path / "program.py").write_text(textwrap.dedent(HOOKED))
    follow()
    quarters = {function.name: counts for function, counts in counted_in(tmp_path / "run" / "calls.json")[1].items()}
    first, *_, last = quarters["hooked"]
    assert last > 4 * first > 0 and quarters["hooked"] == sorted(quarters["hooked"])
    assert max(quarters["once"]) - min(quarters["once"]) <= 1


LOOPS = """
    import torch
    from torch import nn

    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters())

    for step in range(2):
        model.train()(torch.ones(1, 2)).sum().backward()
        optimizer.step()  # step
        model.eval()
        for batch in range(2):
            model(torch.ones(1, 2))  # evaluation
"""


@pytest.mark.timeout(240)
def test_lines_of_steps_and_of_evaluations_are_told_apart(tmp_path, follow):
    script = tmp_path / "program.py"
    script.write_text(text := textwrap.dedent(LOOPS))
    follow()
    numbers = {word: text[: text.index(f"# {word}")].count("\n") + 1 for word in ("step", "evaluation")}
    lines = loop_lines_in(tmp_path / "run" / "loop_lines.json")
    assert lines.steps == {(str(script), numbers["step"])}
    assert lines.evaluations == {(str(script), numbers["evaluation"])}
    assert not any(loop_lines_in(tmp_path / "nothing.json"))

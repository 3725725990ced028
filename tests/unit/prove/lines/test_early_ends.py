"""Changed lines that would leave the training's loop, and that no run reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstall.prove.lines.early_ends import first
from unstall.prove.lines.reached import LoopLines
from unstall.prove.lines.sources import Change
from unstall.prove.trees import Sides

TRAIN = Path("/program/train.py")
BEFORE = """\
def main(loader):
    for epoch in range(3):
        for batch in loader:
            step(batch)
        if epoch > 9:
            break
"""


def early(after, *, reached=(), step_lines=((str(TRAIN), 4),), evaluations=(), **given):
    sides = Sides({TRAIN: BEFORE.encode()}, {TRAIN: after.encode()})
    lines = frozenset((str(TRAIN), line) for line in reached)
    return first(Change.of(sides), lines, LoopLines(frozenset(step_lines), frozenset(evaluations)), **given)


def after(lines, indent=8):
    return BEFORE + "".join(" " * indent + line + "\n" for line in lines)


@pytest.mark.parametrize("leaves", ["break", "return", "raise ValueError", "continue", "sys.exit(0)"])
def test_what_would_leave_the_loop_of_the_training_is_named(leaves):
    assert early(after(["if loss > best:", f"    {leaves}"])).startswith(f"no run reached train.py:8 ({leaves})")


def test_so_is_what_would_leave_an_evaluation():
    lines = {"step_lines": (), "evaluations": [(str(TRAIN), 4)]}
    left = early(after(["if loss > best:", "    break"]), **lines)
    assert left == "no run reached train.py:8 (break), where an evaluation would leave some out"
    capped = BEFORE.replace("in loader:", "in islice(loader, 250):")
    assert "an evaluation sooner, which train.py:3" in early(capped, **lines)
    assert early(capped, step_lines=()) is None
    guarded = BEFORE.replace("step(batch)", "if len(batch): step(batch)")
    assert early(guarded, steps_always=True, **lines) is None  # that a model is not called is seen


def test_what_a_run_has_reached_is_none():
    assert early(after(["if loss > best:", "    break"]), reached=[8]) is None


def test_loops_in_which_no_training_step_is_made_do_not_count():
    assert early(after(["if loss > best:", "    break"]), step_lines=()) is None
    assert early(after(["for box in boxes:", "    if box is None:", "        break"], 0)) is None


def test_a_function_within_the_loop_is_left_without_leaving_the_loop():
    assert early(after(["def close(a):", "    if a > best:", "        return 1"])) is None


def test_a_condition_of_the_original_may_be_written_in_another_place():
    assert early(BEFORE.replace("        if epoch > 9:", "        x = 1\n        if epoch > 9:")) is None
    assert early(after(["if epoch > 9:", "    return"])) is None


def test_source_that_nobody_can_read_names_none():
    assert early("def f(:\n") is None


def test_a_new_condition_for_the_step_is_named_where_it_always_held():
    guarded = BEFORE.replace("            step(batch)", "            if norm < 3:\n                step(batch)")
    lines = {"step_lines": [(str(TRAIN), 5)], "reached": [4, 5]}
    assert early(guarded, **lines, steps_always=True) == "no run left a step out, which train.py:4 (if norm < 3) may do"
    assert early(guarded, **lines, steps_always=False) is None
    assert early(guarded.replace("norm < 3", "epoch > 9"), **lines, steps_always=True) is None


@pytest.mark.parametrize(
    "head",
    ["while epoch < 3 and loss > low:", "for epoch in itertools.takewhile(goes_on, range(3)):",
     "for epoch in iter(ask, None):", "for epoch in islice(loader, 256):", "for row, x in zip(torch.zeros(256, 2), y):",
     "for row, x in zip([0] * 256, loader):", "for row, x in zip(rows, loader):"],
)  # fmt: skip
def test_a_loop_that_may_end_on_a_new_condition_is_named(head):
    changed = BEFORE.replace("for epoch in range(3):", head) + "\nMOST = 256\nrows = torch.zeros((MOST, 2))\n"
    words = head.removesuffix(":")[:40]
    assert early(changed) == f"no run ended the training sooner, which train.py:2 ({words}) may do"
    assert early(changed, step_lines=[(str(TRAIN), 1)]) is None


@pytest.mark.parametrize(
    "head",
    ["while True:", "for epoch in iter(range(3)):", "for epoch in track(range(3)):", "for x, n in zip(loader, count()):",
     "for x, y in zip(xs.split(16), ys.split(16)):", "for n, x in zip(range(9), loader, strict=True):"],
)  # fmt: skip
def test_other_loops_end_as_their_data_do(head):
    assert early(BEFORE.replace("for epoch in range(3):", head)) is None


@pytest.mark.parametrize(
    "step", ["ok and step(batch)", "step(batch) if ok else skip()", "(step if ok else skip)(batch)"]
)
def test_a_step_that_is_chosen_within_a_statement_is_named(step):
    changed = BEFORE.replace("step(batch)", step)
    assert "a step out, which train.py:4" in early(changed, steps_always=True)
    assert early(BEFORE.replace("step(batch)", "step(a or b)"), steps_always=True) is None


def test_a_step_below_a_case_is_named():
    step = "            match kind:\n                case 1:\n                    step(batch)"
    changed = BEFORE.replace("            step(batch)", step)
    assert "match kind" in early(changed, step_lines=[(str(TRAIN), 6)], steps_always=True)


GIVES = """
def epochs(count):
    for epoch in range(count):
        if {condition}:
            {end}
        yield epoch
"""


def headed(function, head="for epoch in epochs(3):"):
    """The training's loop goes through what a function gives, which is the change's."""
    return BEFORE.replace("for epoch in range(3):", head) + function


@pytest.mark.parametrize("end", ["return", "break", "raise StopIteration"])
def test_what_gives_the_epochs_may_end_on_a_new_condition(end):
    reason = early(headed(GIVES.format(condition="losses[-1] < 0.1", end=end)))
    assert reason == f"no run ended the training sooner, which train.py:11 ({end}) may do"


@pytest.mark.parametrize(
    ("condition", "end", "reached"),
    [("done", "return", [11]), ("epoch > 9", "return", []), ("bad", "raise ValueError", [])],
)
def test_an_end_that_came_or_was_known_and_an_error_are_none(condition, end, reached):
    assert early(headed(GIVES.format(condition=condition, end=end)), reached=reached) is None


def test_what_a_function_gives_may_end_on_a_condition_itself():
    function = "\ndef worth(losses):\n    return itertools.takewhile(lambda epoch: losses[-1] > 0.1, range(3))\n"
    assert "sooner, which train.py:9 (return itertools.takewhile" in early(headed(function, "for epoch in worth(a):"))
    both = "\ndef worth(losses):\n    while losses[-1] > 0.1 and left:\n        yield left.pop()\n"
    assert "sooner, which train.py:9 (while losses" in early(headed(both, "for epoch in worth(a):"))


@pytest.mark.parametrize(
    "function",
    [
        "\ndef ahead(batches):\n    while pending:\n        yield pending.popleft().result()\n",
        "\ndef ahead(batches):\n    for batch in batches:\n        if batch.is_pinned():\n            batch = batch.cuda()\n"
        "        yield batch\n",
    ],
)
def test_what_is_worked_off_ends_for_one_reason(function):
    assert early(headed(function, "for epoch in ahead(range(3)):")) is None


def test_a_new_condition_for_the_step_in_what_the_loop_calls_is_named():
    changed = BEFORE + "\ndef step(batch):\n    if batch.ok:\n        optimizer.step()\n"
    lines = {"step_lines": [(str(TRAIN), 4), (str(TRAIN), 10)], "reached": [9, 10], "steps_always": True}
    assert early(changed, **lines) == "no run left a step out, which train.py:9 (if batch.ok) may do"


def test_a_condition_around_the_whole_training_is_none():
    changed = "if __name__ == '__main__':\n    main(loader)\n"
    lines = {"step_lines": [(str(TRAIN), 4), (str(TRAIN), 8)], "reached": [8], "steps_always": True}
    assert early(BEFORE + changed, **lines) is None

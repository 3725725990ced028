"""What a run's clock says, and when a comparison is decided."""

from __future__ import annotations

import json

import pytest
from optimize_builders import make_run

from unstall.optimize.comparison import PairedRuns, TimedRun, TimedWindow, TrialFailed, interval_excludes, timed
from unstall.optimize.proposal import Attempt, Proposal
from unstall.optimize.remedies import all_remedies
from unstall.optimize.remedies_file import RemediesError, read, written


def ran(folder, facts=None, status=0, *, timed_out=False, output=""):
    if facts is not None:
        base = {"began": 0.0, "units": [1] * len(facts["times"]), "warmup": 0, "stopped": True}
        (folder / "clock.json").write_text(json.dumps({**base, **facts}))
    return make_run(folder, status=status, seconds=12.0, timed_out=timed_out, output=output)


def pair(a, b):
    run = make_run()
    return TimedRun(10, 10, 10 * a, run), TimedRun(10, 10, 10 * b, run)


def test_warm_up_is_left_out_and_the_same_steps_are_counted(tmp_path):
    found = timed(ran(tmp_path, {"times": [0, 9, 10, 11, 12, 13], "warmup": 1}), TimedWindow("optimizer", 1, 3))
    assert (found.steps, found.units, found.seconds) == (3, 3, 3)


def test_rows_are_the_unit_where_calls_are_counted(tmp_path):
    found = timed(ran(tmp_path, {"times": [0, 1, 2], "units": [4, 4, 8]}), TimedWindow("forward", 0, 2))
    assert found.units == 12 and found.unit_s == pytest.approx(2 / 12)


@pytest.mark.parametrize(
    ("facts", "status", "timed_out", "word"),
    [
        (None, 1, False, "exit code 1 before a step was done: ValueError: no"),
        (None, -9, True, "no end after 12 s"),
        ({"times": [0, 1, 2], "stopped": False}, 3, False, "exit code 3"),
        ({"times": [0]}, 0, False, "only 1 steps"),
    ],
)
def test_a_run_that_failed_says_so_in_a_line(tmp_path, facts, status, timed_out, word):
    with pytest.raises(TrialFailed, match=word):
        timed(
            ran(tmp_path, facts, status, timed_out=timed_out, output="...\nValueError: no\n"),
            TimedWindow("batch", 0, 2),
        )


@pytest.mark.parametrize(
    ("pairs", "done"),
    [
        ([(1, 0.5), (1, 0.5)], True),
        ([(1, 1.1), (1, 1.2)], True),
        ([(1, 0.5), (1, 0.99)], False),
        ([(1, 0.6), (1, 1.9)], False),
        ([(1, 0.6), (1, 1.9), (1, 1.1)], True),
        ([(1, 0.99), (1, 1.1)], True),
    ],
)
def test_a_comparison_goes_on_until_the_interval_lies_on_one_side(pairs, done):
    assert interval_excludes(1.02)(PairedRuns([pair(a, b) for a, b in pairs])) is done


def test_the_remedies_file_holds_what_can_be_set_at_run_time(tmp_path):
    remedies = all_remedies()
    kept = [
        Attempt(remedies["threads"], Proposal("2 threads", 1.5, "", settings={"threads": 2})),
        Attempt(remedies["loader-workers"], Proposal("workers", 2, "", settings={"loader": {"num_workers": 2}})),
        Attempt(remedies["vectorize-loop"], Proposal("the loop", 2, "")),
    ]
    path = tmp_path / "remedies.toml"
    path.write_text(written(kept))
    assert read(path) == {"threads": 2, "loader": {"num_workers": 2}}
    assert "the loop (only in the patch)" in path.read_text()


@pytest.mark.parametrize("text", ["threads = 'two'\n", "speed = 9\n", "loader = 3\n", "[loader]\nx = 1\n", "= broken"])
def test_a_remedies_file_that_is_wrong_is_refused(tmp_path, text):
    path = tmp_path / "remedies.toml"
    path.write_text(text)
    with pytest.raises(RemediesError, match="remedies"):
        read(path)
    with pytest.raises(RemediesError, match="cannot be read"):
        read(tmp_path / "none.toml")

"""When to stop: what is left, what changes brought, what the next would save."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from changes import changed
from makers import entry, report
from rich.console import Console

from unstall.records import report as r
from unstall.records.comparison import Savings
from unstall.records.speedup import ExpectedGain
from unstall.repeat import stopping
from unstall.report import next_view, wording

_NOW = datetime(2026, 1, 3, tzinfo=timezone.utc)


def _history(*speeds):
    return [entry(str(number), speed, revision=f"{number:x}" * 40) for number, speed in enumerate(speeds, 1)]


def test_a_healthy_program_is_good_enough():
    found = stopping.judge(_history(10.0), report(pattern="healthy", headroom=1.3), now=_NOW)
    assert found.answer == "stop" and found.best is None


def test_close_to_the_bound_is_good_enough():
    found = stopping.judge(_history(10.0), report(headroom=1.04), now=_NOW)
    assert (found.answer, found.bound) == ("stop", pytest.approx(1.04))


def test_much_left_and_nothing_tried_yet_goes_on():
    found = stopping.judge(_history(10.0), report(headroom=4.0), now=_NOW)
    assert found.answer == "go on" and found.bound == pytest.approx(4) and found.best.is_ceiling


def test_gains_that_have_dried_up_are_good_enough():
    found = stopping.judge(_history(10, 20, 20.4, 20.5), report(headroom=1.5), now=_NOW)
    assert found.answer == "stop"
    assert [one.gain for one in found.iterations[1:]] == pytest.approx([2, 1.02, 1.005], rel=1e-3)
    assert 1 < found.expected_gain < 1.02


def test_gains_that_go_on_go_on():
    assert stopping.judge(_history(10, 15, 22), report(headroom=3.0), now=_NOW).answer == "go on"


def test_noise_hides_small_gains():
    entries = _history(10, 10.6, 11.2)
    assert stopping.judge(entries, report(headroom=2.0), now=_NOW).answer == "go on"
    assert stopping.judge(entries, report(headroom=2.0), noise=0.05, now=_NOW).answer == "stop"


def test_a_tested_patch_is_worth_applying_whatever_came_before():
    remedies = [r.TriedRemedy(name="loader-workers", exactness="exact", kept=True, speedup=1.8)]
    found = stopping.judge(
        _history(10, 10.1, 10.1), report(kind="optimize", remedies=remedies, total_speedup=1.8), now=_NOW
    )
    assert found.answer == "go on" and "loader-workers" in found.best.what and not found.best.is_ceiling


def test_a_run_without_steps_tells_nothing():
    assert stopping.judge([entry(steps_per_s=None)], report(None, steps=0), now=_NOW).answer == "unknown"


def test_what_was_tested_holds_while_the_code_is_the_same():
    tested, run = entry("t", kind="optimize"), entry("r")
    assert stopping.most_telling([tested, entry("s", kind="simplify"), run]) is tested
    assert stopping.most_telling([tested, entry("r2", changes="abcd")]).id == "r2"
    assert stopping.most_telling([entry("t", kind="optimize", revision=None), entry("r", revision=None)]).id == "r"


def test_runs_of_one_code_are_one_iteration_and_a_step_back_is_no_gain():
    entries = [entry("a", 10.0), entry("b", 12.0), entry("c", 5.0, changes="abcd"), entry("d", 22.0, revision="e" * 40)]
    found = stopping.iterations(entries)
    assert [(one.steps_per_s, one.runs) for one in found] == [(11, 2), (5, 1), (22, 1)]
    assert found[2].gain == 2
    assert stopping.expected_gain(found, None) == pytest.approx(2**0.5)


def test_without_revisions_only_another_speed_is_another_state():
    speeds = (10.0, 10.1, 9.9, 20.0, 20.2)
    entries = [entry(str(number), speed, revision=None) for number, speed in enumerate(speeds)]
    found = stopping.iterations([*entries, entry("c", 20.0, revision=None, command=["train.py", "--big"])])
    assert [(one.steps_per_s, one.runs) for one in found] == [(10.0, 3), (pytest.approx(20.1), 2), (20.0, 1)]
    assert stopping.judge(entries[:3], report(headroom=3.0), now=_NOW).answer == "go on"


def test_a_step_back_is_never_good_enough():
    found = stopping.judge(_history(10.0, 20.0, 20.1, 5.0), report(headroom=1.3), now=_NOW)
    assert found.answer == "go on" and len(found.why) == 1
    undone = [*_history(10.0, 20.0, 20.1, 5.0), entry("5", 20.2, revision="3" * 40)]
    assert stopping.judge(undone, report(headroom=1.3), now=_NOW).answer == "stop"


def test_a_larger_batch_is_no_step_back():
    before = entry("a", 10.0, samples_per_s=100.0)
    larger = entry("b", 6.0, samples_per_s=120.0, command=["train.py", "--batch", "20"])
    assert stopping.faster_before([before, larger]) == ("c0ffee00", 1.0)
    assert stopping.faster_before([before, entry("b", 6.0, revision="e" * 40)]) == ("c0ffee00", pytest.approx(10 / 6))
    assert stopping.faster_before([before]) is None


def test_the_expected_gain_is_never_beyond_the_bound():
    assert stopping.expected_gain(stopping.iterations(_history(1, 4, 16)), 1.5) == 1.5


def test_what_a_remedy_would_save():
    entries = [entry(str(day), 10.0, started=f"2026-01-0{day}T00:00:00Z", duration_s=36000) for day in (1, 2)]
    found = stopping.judge(entries, report(headroom=2.0), price=2.5, now=_NOW)
    assert found.savings == Savings(20.0, 10.0, 25.0, "history")
    assert stopping.judge(entries, report(headroom=2.0), hours_per_week=100, now=_NOW).savings.hours_saved == 50


def test_hours_of_long_ago_or_of_no_time_do_not_count():
    entries = [entry("a", 1, started="2020-01-01T00:00:00Z"), entry("b", 1, started="never")]
    assert stopping.weekly_hours(entries, _NOW) == 0


@pytest.mark.parametrize("speeds", [(10.0,), (10, 20, 20.4), (None,)])
def test_it_is_said(speeds):
    assert "train.py" in _shown(stopping.judge(_history(*speeds), report(headroom=2.0), price=1.0, now=_NOW), 1.0)


def _shown(found, price=None, command=("prove it:", "unstall simplify train.py")):
    console = Console(width=80, record=True, file=open("/dev/null", "w"))
    next_view.page(next_view.NextAnswer(found, wording.NextCommand(*command), price), console.width).show(console)
    return console.export_text()


def test_money_and_hours_are_said_with_where_they_come_from():
    shown = _shown(stopping.judge(_history(10.0), report(headroom=2.0), price=2.5, hours_per_week=100, now=_NOW), 2.5)
    assert "up to 50 h of 100 h a week" in shown and "worth up to 125 a week, at 2.5 an hour" in shown
    assert "unstall simplify train.py" in shown
    by_history = _shown(stopping.judge(_history(10.0), report(headroom=2.0), now=_NOW))
    assert "hours from the history" in by_history and "an hour" not in by_history


def test_a_price_is_answered_even_where_there_is_nothing_to_save():
    healthy = stopping.judge(_history(10.0), report(pattern="healthy"), price=2.5, now=_NOW)
    assert healthy.savings.hours_saved == 0 and "nothing: no remedy is known" in _shown(healthy, 2.5)
    assert "unstall simplify" not in _shown(healthy, 2.5)
    long_ago = stopping.judge([entry(started="2020-01-01T00:00:00Z")], report(), price=2.5, now=_NOW)
    assert long_ago.savings is None and "--hours" in _shown(long_ago, 2.5)


def test_a_known_remedy_outweighs_a_healthy_verdict():
    remedies = [r.TriedRemedy(name="pin-memory", exactness="exact", kept=False, predicted_speedup=1.4)]
    found = stopping.judge(_history(10.0), report(pattern="healthy", remedies=remedies), now=_NOW)
    assert (found.answer, found.best.what) == ("go on", "pin-memory")


def test_a_remedy_that_is_predicted_to_harm_is_none():
    remedies = [r.TriedRemedy(name="more-workers", exactness="exact", kept=False, predicted_speedup=0.8)]
    found = stopping.judge(_history(10.0), report(remedies=remedies), hours_per_week=10, now=_NOW)
    assert found.best.what != "more-workers" and found.savings.hours_saved == 5


def test_speeds_of_another_machine_are_no_gains():
    entries = [entry("a", 10.0, host="slow"), entry("b", 30.0, revision="e" * 40)]
    assert [one.gain for one in stopping.judge(entries, report(), now=_NOW).iterations] == [None]


@pytest.mark.parametrize(
    "speeds, more, said",
    [
        ((10.0,), {}, "one state of the code has run so far"),
        ((10.0, 30.0), {}, "the last change gained 3×"),
        ((10.0, 9.9), {}, "no faster"),
        ((10.0, 20.0, 5.0), {}, "22222222 was 4× as fast as the last run"),
        ((10.0, 20.0, 5.0), {"pattern": "healthy"}, "22222222 was 4× as fast as the last run"),
        ((10, 20, 20.4, 20.5), {}, "under 1.03× is little"),
        ((10.0,), {"pattern": "healthy"}, "the verdict is healthy"),
        ((10.0,), {"headroom": 1.02}, "close enough"),
        ((10.0,), {"confidence": "low"}, "low confidence"),
    ],
)
def test_the_reason_is_said_in_words(speeds, more, said):
    assert said in " / ".join(stopping.judge(_history(*speeds), report(**more), now=_NOW).why)


def test_what_is_not_explained_is_no_reason_to_stop():
    found = stopping.judge(_history(10.0), report(pattern="unexplained", headroom=1.0), now=_NOW)
    assert (found.answer, found.bound, found.best) == ("unknown", None, None)
    assert "unstall simplify" in found.why[0]


def test_the_best_next_step_brings_its_expected_gain_not_the_ceiling():
    given = report(headroom=4.0)
    expected = ExpectedGain(remedy="a fix", value=1.6, low=1.2, high=2.4, confidence="low", known_by="estimated")
    found = stopping.judge(_history(10.0), changed(given, verdict__expected_gain=expected), now=_NOW)
    assert (found.best.gain, found.best.interval, found.best.is_ceiling) == (1.6, (1.2, 2.4), False)
    assert found.answer == "go on" and found.why[0].startswith("4×")
    assert "expected gain 1.6×, 1.2 to 2.4, estimated" in next_view.page(next_view.NextAnswer(found)).as_text()


@pytest.mark.parametrize(("pattern", "others"), [("memory-growth", []), ("startup-bound", ["host-bound"])])
def test_what_costs_no_step_its_time_is_a_reason_to_go_on(pattern, others):
    verdict = changed(report(pattern=pattern, headroom=1.0), verdict__traits=("untimed",)).verdict
    stalls = [report(pattern=other, headroom=1.5).verdict for other in others]
    given = changed(report(), verdict=verdict, findings=[verdict, *stalls])
    found = stopping.judge(_history(10.0), given, now=_NOW)
    assert found.answer == "go on" and pattern in found.why[0]
    assert (found.bound, found.best and found.best.gain) == ((pytest.approx(1.5), 1.5) if stalls else (None, None))

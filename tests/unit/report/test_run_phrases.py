from __future__ import annotations

import pytest
from changes import changed
from report_examples import finding, make

from unstall.records import report as r
from unstall.records.run import Between, StepTime, Throughput, Utilization
from unstall.report import run_phrases


def test_phases_are_sorted_and_small_ones_folded(input_bound: r.Report) -> None:
    shown, folded = run_phrases.phases(input_bound)
    assert [phase.name for phase in shown] == ["data_wait", "forward", "backward", "optimizer"]
    assert [phase.name for phase in folded] == ["callback", "other", "transfer"]


def test_a_lone_small_phase_keeps_its_name() -> None:
    shown, folded = run_phrases.phases(make(finding("healthy"), {"forward": 0.995, "other": 0.005}))
    assert [phase.name for phase in shown] == ["forward", "other"]
    assert folded == []


def test_blocked_time_is_told_where_it_matters(input_bound: r.Report) -> None:
    notes = [run_phrases.phase_note(phase) for phase in input_bound.phases]
    assert notes.count("") == len(notes) - 1
    assert "60 % blocked, 55 % on network (1.2 MB)" in notes


def test_what_was_not_measured_is_not_mentioned() -> None:
    report = make(
        finding("healthy"),
        {},
        throughput=Throughput(steps_per_s=None),
        utilization=Utilization(),
        run={"environment": {}},
    )
    assert run_phrases.throughput(report) == []
    assert run_phrases.utilization(report) == []
    assert run_phrases.step_times(report) == []
    assert run_phrases.startup(report) == []


def test_what_is_between_steps_is_no_part_of_the_step_that_is_shown(input_bound: r.Report) -> None:
    evaluation = Between(mean_s=0.033, each_s=2.1, count=4, function="evaluate", file="/w/train.py", line=80)
    step = StepTime(mean=0.044, p50=0.011, p95=0.012)
    report = changed(input_bound, throughput__step_s=step, throughput__between=evaluation, account=None)
    assert run_phrases.step_times(report) == [
        "11 ms a step",
        "p50 11 ms",
        "p95 12 ms",
        "between steps: evaluate, train.py:80, 4 times 2.1 s, 33 ms a step",
        "shares are of 44 ms, with that",
    ]


def test_throughput(input_bound: r.Report) -> None:
    assert run_phrases.throughput(input_bound) == [
        "41.5 steps/s",
        "41.5 batches/s",
        "1.33 k samples/s",
        "3.2 GFLOP/s",
        "MFU 3.12 %",
        "FLOPs counted for 98 % of the operators",
    ]


@pytest.mark.parametrize(
    "gpu, installed, expected",
    [
        (None, [], ["GPU none here"]),
        (None, [{"name": "H200"}], []),
        ([0.4], [{"name": "H200"}], ["GPU 0 40 %"]),
        ([0.4, 0.5, 0.9], [], ["3 GPUs 40 % to 90 %"]),
    ],
)
def test_gpus(gpu: list[float] | None, installed: list, expected: list[str]) -> None:
    report = make(
        finding("healthy"),
        {},
        utilization=Utilization(gpu=gpu),
        run={"environment": {"gpus": installed}},
    )
    assert run_phrases.utilization(report) == expected


def test_a_busy_machine_and_a_leak_are_named() -> None:
    report = make(
        finding("healthy"),
        {},
        utilization=Utilization(rss_peak_bytes=10**9, rss_growth_bytes_per_step=5e5, other_processes_cores=1.234),
    )
    assert run_phrases.utilization(report)[1:] == [
        "memory 1 GB peak, +500 kB/step",
        "other processes 1.23 cores",
    ]


@pytest.mark.parametrize(
    "code, phrase",
    [
        (None, "stopped by unstall after the requested steps"),
        (0, "exit code 0"),
        (3, "exit code 3"),
        (-9, "killed by SIGKILL"),
        (-999, "killed by signal 999"),
    ],
)
def test_exit(code: int | None, phrase: str) -> None:
    assert run_phrases.exit_phrase(code) == phrase


def test_only_notable_gaps_are_told(input_bound: r.Report) -> None:
    assert run_phrases.startup(input_bound) == [
        "2.1 s before the first batch",
        "900 ms starting workers",
        "1.2 s warming up",
    ]


def test_the_function_that_holds_the_set_up_is_told(input_bound: r.Report) -> None:
    line = r.LineTime(function="make_samples", file="/w/rnn.py", line=160, share=0.672)
    report = changed(input_bound, startup__set_up=line)
    assert run_phrases.startup(report)[:2] == [
        "2.1 s before the first batch",
        "67 % of that in make_samples, rnn.py:160",
    ]
    short = changed(input_bound, startup__set_up=line, startup__before_first_batch_s=0.1)
    assert not any("make_samples" in phrase for phrase in run_phrases.startup(short))

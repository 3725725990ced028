from __future__ import annotations

import pytest
from report_examples import finding, make

from unstall.records import report as r
from unstall.report import facts


def test_phases_are_sorted_and_small_ones_folded(input_bound: r.Report) -> None:
    shown, folded = facts.phases(input_bound)
    assert [phase.name for phase in shown] == ["data_wait", "forward", "backward", "optimizer"]
    assert [phase.name for phase in folded] == ["callback", "other", "transfer"]


def test_a_lone_small_phase_keeps_its_name() -> None:
    shown, folded = facts.phases(make(finding("healthy"), {"forward": 0.995, "other": 0.005}))
    assert [phase.name for phase in shown] == ["forward", "other"]
    assert folded == []


def test_blocked_time_is_told_where_it_matters(input_bound: r.Report) -> None:
    notes = [facts.phase_note(phase) for phase in input_bound.phases]
    assert notes.count("") == len(notes) - 1
    assert "60 % blocked, 55 % on network (1.2 MB)" in notes


def test_what_was_not_measured_is_not_mentioned() -> None:
    report = make(
        finding("healthy"),
        {},
        throughput=r.Throughput(steps_per_s=None),
        utilization=r.Utilization(),
        run={"environment": {}},
    )
    assert facts.throughput(report) == []
    assert facts.utilization(report) == []
    assert facts.step_times(report) == []
    assert facts.startup(report) == []


def test_throughput(input_bound: r.Report) -> None:
    assert facts.throughput(input_bound) == [
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
        utilization=r.Utilization(gpu=gpu),
        run={"environment": {"gpus": installed}},
    )
    assert facts.utilization(report) == expected


def test_a_busy_machine_and_a_leak_are_named() -> None:
    report = make(
        finding("healthy"),
        {},
        utilization=r.Utilization(rss_peak_bytes=10**9, rss_growth_bytes_per_step=5e5, other_processes_cores=1.234),
    )
    assert facts.utilization(report)[1:] == [
        "memory 1 GB peak, +500 kB/step",
        "other processes 1.23 cores",
    ]


@pytest.mark.parametrize(
    "code, phrase",
    [
        (None, "stopped by unstall after the steps asked for"),
        (0, "exit code 0"),
        (3, "exit code 3"),
        (-9, "killed by SIGKILL"),
        (-999, "killed by signal 999"),
    ],
)
def test_exit(code: int | None, phrase: str) -> None:
    assert facts.exit_phrase(code) == phrase


def test_only_notable_gaps_are_told(input_bound: r.Report) -> None:
    assert facts.startup(input_bound) == [
        "2.1 s before the first batch",
        "900 ms starting workers",
        "1.2 s warming up",
    ]

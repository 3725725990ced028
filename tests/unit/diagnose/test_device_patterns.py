"""Each pattern on a program that has it, and on one that has not."""

from __future__ import annotations

import pytest
from gpu_programs import (
    Program,
    busy_host,
    compute_bound,
    copies,
    launch_bound,
    reads_back,
    reduces,
    waits_for_data,
)
from patterncase import device_findings

from unstall.trace.features import TraceFeatures
from unstall.trace.ranks import Ranks


def _features(program: Program) -> TraceFeatures:
    return TraceFeatures(Ranks.of([program.timeline()]))


@pytest.mark.parametrize(
    ("program", "pattern", "cause"),
    [
        (waits_for_data(), "input-bound", "workers"),
        (launch_bound(), "overhead-bound", "small-ops"),
        (compute_bound(), "compute-bound", "kernel"),
        (reads_back(), "sync-bound", "item"),
        (busy_host(), "host-bound", "preprocess"),
        (copies(), "transfer-bound", "pageable"),
        (reduces(), "communication-bound", None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_verdict(program, pattern, cause):
    verdict, *others = device_findings(_features(program))
    assert (verdict.pattern, verdict.cause) == (pattern, cause)
    assert verdict.headroom >= 1
    assert verdict.evidence
    assert verdict.advice
    assert "healthy" not in [finding.pattern for finding in others]


def test_nothing_worth_fixing_is_healthy():
    program = Program()
    for _ in range(4):
        with program.step():
            for _ in range(20):
                program.launch(80.0)
                program.launch(40.0, "ncclDevKernel_AllGather", "c10d::allgather_", stream=20)
        program.sync()
    found = device_findings(_features(program))
    assert found[0].pattern in ("healthy", "compute-bound")
    assert found[0].headroom < 2.1


def test_a_waiting_host_with_a_busy_device_is_not_sync_bound():
    assert [one.pattern for one in device_findings(_features(compute_bound()))] == ["compute-bound"]


def test_workers_are_not_advised_where_there_are_some():
    program = Program()
    for _ in range(3):
        with program.step():
            program.batch(3000.0, "_MultiProcessingDataLoaderIter")
            program.launch(500.0)
        program.sync()
    verdict = device_findings(_features(program))[0]
    assert verdict.pattern == "input-bound"
    assert verdict.cause is None


def test_a_shape_that_only_the_device_knows():
    program = Program()
    for _ in range(3):
        with program.step():
            for _ in range(20):
                program.launch(60.0)
                with program.inside("aten::nonzero"):
                    program.busy(1.0)
                    program.copy(2.0)
                program.busy(30.0)
        program.sync()
    verdict = device_findings(_features(program))[0]
    assert (verdict.pattern, verdict.cause) == ("sync-bound", "shape")
    assert verdict.culprit is not None
    assert verdict.culprit.function == "aten::nonzero"


def test_the_culprit_is_the_users_function():
    program = Program()
    for _ in range(3):
        with program.step(), program.inside("/home/me/train.py(7): main", "python_function"):
            with program.inside("/home/me/train.py(21): preprocess", "python_function"):
                with program.inside("numpy/core/numeric.py(5): resize", "python_function"):
                    program.busy(4000.0)
            for _ in range(20):
                program.launch(50.0)
        program.sync()
    culprit = device_findings(_features(program))[0].culprit
    assert culprit is not None
    assert (culprit.function, culprit.file, culprit.line) == ("preprocess", "/home/me/train.py", 21)


def test_a_gain_that_the_replay_cannot_see_is_estimated():
    """The host waits for a copy, the device is idle, and its stream waits for work of a graph that is not recorded."""
    program = Program()
    for _ in range(3):
        with program.step():
            program.launch(100.0)
            with program.inside("aten::to"):
                hidden = program.now + 5000.0
                program.free[7, 0] = program.free[0, 7] = hidden
                program.copy(2.0)
            for _ in range(10):
                program.launch(100.0)
        program.sync()
    verdict = device_findings(_features(program))[0]
    assert verdict.pattern == "sync-bound"
    assert verdict.headroom_known_by in ("estimated", "predicted")
    assert verdict.headroom > 1.5


def test_one_rank_alone_cannot_tell_transfer_from_waiting():
    timeline = reduces().timeline(distributedInfo={"rank": 0, "world_size": 8})
    verdict = device_findings(TraceFeatures(Ranks.of([timeline])))[0]
    assert verdict.pattern == "communication-bound"
    assert any("one rank alone" in line for line in verdict.evidence)


def test_few_events_are_low_confidence():
    program = Program()
    with program.step():
        program.launch(5.0)
        program.busy(500.0)
    assert device_findings(_features(program))[0].confidence != "high"


def test_a_host_culprits_share_is_its_own():
    program = Program()
    for _ in range(3):
        with program.step():
            program.busy(3000.0, "train.py(3): load")
            program.launch(500.0)
            program.sync()
            program.busy(1000.0, "train.py(9): log")
            program.launch(500.0)
        program.sync()
    device = _features(program)
    found = device_findings(device)[0]
    assert (found.pattern, found.culprit.function) == ("host-bound", "load")
    assert found.culprit.share == pytest.approx(3000 / program.step_us(), rel=0.05)
    assert found.culprit.share < device.shares["idle_host"]


def products(dtype: str, share_of_peak: float, kernel: str = "gemm") -> TraceFeatures:
    """A device that multiplies matrices all the time, at this share of an H200's listed rate for the dtype."""
    peak = {"c10::BFloat16": 989e12, "float": 67e12}[dtype]
    size = 4096
    program = Program()
    for _ in range(4):
        with program.step():
            for _ in range(20):
                shapes = {"Input_Dims": [[size, size], [size, size]], "Input_type": [dtype, dtype]}
                with program.inside("aten::mm", **shapes):
                    program.launch(2 * size**3 / (share_of_peak * peak) * 1e6, kernel, "aten::mm", before=1.0)
        program.sync()
    device = [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 1, "numSms": 132}]
    return TraceFeatures(Ranks.of([program.timeline(deviceProperties=device)]))


def test_a_device_that_computes_at_a_good_rate_is_healthy():
    verdict, *others = device_findings(products("c10::BFloat16", 0.55))
    assert verdict.pattern == "healthy"
    assert "compute-bound" in [finding.pattern for finding in others]
    assert any("listed peak" in line for line in verdict.evidence)


def test_a_device_that_computes_at_a_poor_rate_is_not():
    assert device_findings(products("c10::BFloat16", 0.2))[0].pattern == "compute-bound"


def test_single_precision_is_told_at_any_rate_with_what_half_would_gain():
    verdict = device_findings(products("float", 0.6))[0]
    assert (verdict.pattern, verdict.cause) == ("compute-bound", "precision")
    assert verdict.expected_gain.remedy == "bfloat16"
    # At half to all of the quicker rate: 989 / 67 is 14.8.
    assert 6 < verdict.expected_gain.low < 8 and 11 < verdict.expected_gain.high < 19


def test_tensor_cores_take_half_as_long_for_half_the_bits():
    gain = device_findings(products("float", 0.6, "sm80_xmma_gemm_tf32f32"))[0].expected_gain
    assert 1.7 < gain.low <= gain.value <= gain.high < 2.4

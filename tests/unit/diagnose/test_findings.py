"""The order of findings, and how sure the verdict is."""

from __future__ import annotations

import msgspec
import pytest
from factory import CALL, NEXT, Source, measurement, stack
from patterncase import host_findings

from unstall.diagnose.findings import confidence_caveats
from unstall.diagnose.patterns.callback_bound import PATTERN as CALLBACK_BOUND
from unstall.records.measurements import GrowingObject, MemoryMeasurement
from unstall.records.model import ModelMeasurement
from unstall.threshold import Range

TRAINING = {"forward": 0.03, "backward": 0.06, "optimizer": 0.01}
COMPUTING = ModelMeasurement(threads=4, flops=5e9, peak_flops=1e11, flops_coverage=1.0)
"""At half of the machine's peak, where the model's step takes a tenth of a second."""
ENOUGH = [stack(CALL, count=500)]
KEPT = GrowingObject(
    path="losses",
    kind="list",
    file="train.py",
    function="train",
    len_per_step=1.0,
    bytes_per_step=2e6,
    graph_per_step=0.0,
)
GROWING = MemoryMeasurement(rss_by_step=[(float(n), 5e8 + 2e6 * n) for n in range(0, 200, 4)])


def verdict(phases, **more):
    return host_findings(measurement(phases, **{"samples": ENOUGH, "model": COMPUTING, **more}))


def patterns(found):
    return [finding.pattern for finding in found]


def test_a_step_with_nothing_in_its_way_is_healthy():
    (first, *rest) = verdict(TRAINING)
    assert (first.pattern, first.headroom, first.confidence) == ("healthy", 1.0, "high")
    assert rest == []


def test_what_is_not_worth_fixing_comes_after_healthy():
    found = verdict({**TRAINING, "callback": 0.01})
    assert patterns(found) == ["healthy", "callback-bound"]


def test_what_is_worth_fixing_comes_before_it():
    found = verdict({**TRAINING, "callback": 0.2})
    assert patterns(found)[0] == "callback-bound"
    assert "healthy" not in patterns(found)


def test_the_greater_stall_comes_first():
    assert patterns(verdict({**TRAINING, "callback": 0.1, "data_wait": 0.3}))[:2] == ["input-bound", "callback-bound"]
    assert patterns(verdict({**TRAINING, "callback": 0.3, "data_wait": 0.1}))[:2] == ["callback-bound", "input-bound"]


def test_by_how_much_ceilings_of_a_kind_are_off_does_not_prefer_that_kind(monkeypatch):
    usually_higher = Range(1.0, 1.7, 7.0, "they are usually higher than they seem")
    monkeypatch.setattr(type(CALLBACK_BOUND), "calibration", ((None, None, usually_higher),))
    first, second = verdict({**TRAINING, "callback": 0.3, "data_wait": 0.32})[:2]
    assert (first.pattern, second.pattern) == ("input-bound", "callback-bound")
    assert second.ceiling.value > first.ceiling.value


@pytest.mark.parametrize("makes", ["torch.tensor(rows)", "torch.stack(rows)"])
def test_what_helps_where_tensors_are_made_of_lists_is_said(tmp_path, makes):
    code = Source(tmp_path / "train.py", f"def train(rows):\n    for _ in range(100):\n        x = {makes}  # made\n")
    verdict_of = verdict({**TRAINING, "other": 0.3}, samples=[stack(code.at("train", "# made"), count=500)])[0]
    assert verdict_of.culprit.line == code.line("# made")
    assert any("item by item" in line for line in verdict_of.advice) == ("tensor" in makes)


@pytest.mark.parametrize("kept", [[], [KEPT]], ids=["nobody was seen to keep it", "kept by a list"])
def test_growing_memory_comes_before_a_lesser_stall_if_it_is_kept_and_after_a_greater(kept):
    memory = msgspec.structs.replace(GROWING, growing=kept)
    small, great = ({**TRAINING, "callback": seconds} for seconds in (0.04, 0.5))
    assert patterns(verdict(small, memory=memory))[:2][:: 1 if kept else -1] == ["memory-growth", "callback-bound"]
    assert patterns(verdict(TRAINING, memory=memory))[0] == "memory-growth"
    assert patterns(verdict(great, memory=memory))[:2] == ["callback-bound", "memory-growth"]


def test_the_models_own_cost_is_blamed_only_where_it_fills_the_step():
    double = ModelMeasurement(threads=4, dtype="torch.float64")
    assert patterns(verdict(TRAINING, model=double))[0] == "compute-bound"
    assert patterns(verdict({**TRAINING, "data_wait": 0.15}, model=double))[0] == "input-bound"


def test_there_is_always_a_verdict():
    for phases in [{"other": 0.1}, {"data_wait": 0.1}, {"env": 0.1}, {"forward": 1e-9}, {"comm": 5.0}]:
        found = verdict(phases, kind="forward")
        assert found
        assert all(finding.headroom >= 1 for finding in found)


# ---------------------------------------------------------------- doubts


def doubt(**more):
    return confidence_caveats(measurement(TRAINING, **{"samples": ENOUGH, **more}))


def test_a_long_quiet_run_leaves_no_doubt():
    assert doubt() == ([], False)


@pytest.mark.parametrize(
    "more, says, low",
    [
        ({"steps": 3}, "only 3 steps", True),
        ({"steps": 15}, "only 15 steps", False),
        ({"spread": 0.2}, "vary", False),
        ({"spread": 2.0}, "vary", True),
        ({"other_cores": 1.0, "cores": 8.0}, "1.0 of 8 cores", False),
        ({"other_cores": 7.0, "cores": 8.0}, "7.0 of 8 cores", True),
        ({"sampling_failure": "not permitted"}, "not permitted", False),
        ({"samples": []}, "few stack samples", False),
        ({"disturbed": True}, "stack sampling had to be included", False),
    ],
)
def test_what_makes_a_verdict_less_sure_is_said_plainly(more, says, low):
    lines, is_low = doubt(**more)
    assert any(says in line for line in lines)
    assert is_low is low


def test_samples_from_inside_are_said_to_be_less_sure():
    (line,), _ = doubt(sampling_failure="not permitted")
    assert "sampled itself" in line
    (line,), _ = doubt(sampling_failure="not permitted", samples=[])
    assert "sampled itself" not in line


def test_doubts_lower_the_confidence_of_every_finding():
    assert {finding.confidence for finding in verdict({**TRAINING, "callback": 0.2}, steps=3)} == {"low"}
    assert "high" not in {finding.confidence for finding in verdict({**TRAINING, "callback": 0.2}, steps=15)}
    assert verdict({**TRAINING, "callback": 0.2})[0].confidence == "high"


def test_a_culprit_in_a_library_comes_with_its_version_and_with_what_to_do(tmp_path):
    info = tmp_path / "site-packages" / "planted-1.2.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.2.1\n")
    (info / "RECORD").write_text("planted/train.py,,\n")
    library = Source(tmp_path / "train.py", "def blur(image):\n    return image  # blur\n", "installed")
    driver = Source(tmp_path / "driver.py", "planted.fit()  # fit\n")
    making = stack(driver.at("<module>", "# fit"), NEXT, library.at("blur", "# blur"), count=80)
    verdict, *_ = host_findings(
        measurement({"data_wait": 0.08, "forward": 0.02}, samples=[making, stack(CALL, count=20)])
    )
    assert (verdict.culprit.function, verdict.culprit.package, verdict.culprit.version) == ("blur", "planted", "1.2.1")
    assert (verdict.culprit.called_by.file, verdict.culprit.called_by.line) == (driver.file, 1)
    assert "planted 1.2.1" in verdict.advice[-1]

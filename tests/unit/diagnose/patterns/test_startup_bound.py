"""A function that holds most of a run before its first step."""

from __future__ import annotations

import pytest
from factory import Source, measurement, run, stack
from patterncase import TRAINING, host_findings

from unstall.diagnose.summary import report
from unstall.records.observations import StackWindow
from unstall.records.report import Startup
from unstall.report import wording

CODE = """
def samples(frames):
    return [cut(frame) for frame in frames]  # cut

def main():
    samples(frames)  # call

frames = read()  # read
"""


@pytest.fixture
def made(tmp_path):
    """A run of 40 s that makes samples for 20 s before its first step; or so long otherwise."""
    code = Source(tmp_path / "train.py", CODE)

    def made(phases=TRAINING, run_s=40.0, function="samples", **more):
        before = Startup(
            before_first_batch_s=25.0, worker_start_s=0.0, warmup_s=0.0, epoch_gaps_s=0.0, after_last_step_s=0.0
        )
        frames = [code.at("main", "# call"), code.at("samples", "# cut")] if function == "samples" else []
        frames = frames or [code.at("<module>", "# read")]
        windows = [StackWindow(5.0, [stack(*frames, count=100)])]
        return measurement(phases, windows_before=windows, startup=before, run_s=run_s, **more)

    return made


def test_a_set_up_that_takes_half_of_the_run_is_the_verdict(made):
    verdict = host_findings(made())[0]
    assert (verdict.pattern, verdict.cause, verdict.culprit.function) == ("startup-bound", "set-up", "samples")
    assert (verdict.share, verdict.headroom, verdict.ceiling) == (0.5, 1.0, None)
    assert "20 s of 40 s" in verdict.evidence[0] and "2× as fast" in verdict.evidence[1]


def test_what_would_save_more_of_the_run_comes_first(made):
    waits = {**TRAINING, "data_wait": 0.6}
    assert [finding.pattern for finding in host_findings(made(waits))][:2] == ["input-bound", "startup-bound"]


def test_it_comes_before_any_stall_of_steps_that_all_together_take_less(made):
    waits = {**TRAINING, "data_wait": 0.6}
    found = host_findings(made(waits, total_steps=20))
    assert [finding.pattern for finding in found][:2] == ["startup-bound", "input-bound"]


@pytest.mark.parametrize("run_s", [None, 100.0])
def test_of_a_run_that_was_cut_short_and_beside_a_long_loop_it_is_none(made, run_s):
    assert "startup-bound" not in [finding.pattern for finding in host_findings(made(run_s=run_s))]


def test_a_script_as_a_whole_is_not_blamed(made):
    assert host_findings(made(function="<module>"))[0].pattern != "startup-bound"


def test_it_is_said_of_the_run_and_promises_no_step_a_gain(made):
    said = wording.headline(report(run(), made()))
    assert "50 % of the run is spent before its first step in samples" in said
    assert "ceiling" not in said and "gain" not in said

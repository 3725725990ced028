import math

import numpy as np
import pytest

from unstall.model import sliders
from unstall.model.function_shares import FunctionShares
from unstall.model.pipeline_model import Pipeline
from unstall.model.work import Layout
from unstall.records import report as r
from unstall.records.archive import Archive
from unstall.records.run import RunInfo, Throughput, Utilization


def archive(function="decode"):
    culprit = r.Culprit(function=function, file="/a.py", line=1, share=0.5)
    verdict = r.Finding(
        pattern="input-bound",
        headroom=2.0,
        headroom_known_by="estimated",
        confidence="high",
        evidence=[],
        advice=[],
        culprit=culprit,
    )
    run = RunInfo(id="x", command=[], started="", duration_s=1.0, steps=1, exit_code=0, environment={})
    return Archive(
        report=r.Report(
            kind="run",
            run=run,
            throughput=Throughput(steps_per_s=1.0),
            utilization=Utilization(),
            phases=[],
            verdict=verdict,
            findings=[],
        )
    )


@pytest.fixture
def recorded():
    """A loader of one worker that takes 20 ms for a batch, half of it in ``decode``, for a step of 10 ms."""
    key = ("a", "decode")
    pipeline = Pipeline(
        layout=Layout(4.0, workers=1),
        phases=("forward",),
        compute=np.full((50, 1), 0.01),
        wait=np.zeros((50, 1)),
        service=np.tile([0.02, 0.0], (50, 1)),
        has_loader=True,
        function_shares=FunctionShares({"data": ((frozenset({key}), 50), (frozenset(), 50))}, own=frozenset({key})),
        measured_s=0.02,
    )
    return lambda kept: pipeline


def test_every_combination_has_an_outcome(recorded):
    table = sliders.sliders(archive(), model=recorded)
    assert [knob.kind for knob in table.knobs] == ["workers", "decode", "threads"]
    assert len(table.outcomes) == math.prod(len(knob.values) for knob in table.knobs)
    workers, decode, threads = table.knobs
    assert workers.values[workers.now] == 1 and decode.values[0] == 1.0 and decode.values[-1] == 0.0

    def step_s(*positions):
        index = 0
        for knob, position in zip(table.knobs, positions):
            index = index * len(knob.values) + position
        return table.outcomes[index].step_s

    assert step_s(1, 0, threads.now) == pytest.approx(0.02)
    assert step_s(2, 0, threads.now) < 0.7 * step_s(1, 0, threads.now)
    assert step_s(1, len(decode.values) - 1, threads.now) < 0.7 * step_s(1, 0, threads.now)


def test_a_culprit_that_no_sample_shows_gives_way_to_the_data(recorded):
    assert [knob.kind for knob in sliders.sliders(archive("unseen"), model=recorded).knobs] == [
        "workers",
        "data",
        "threads",
    ]


def test_a_run_without_a_recording_has_none():
    assert sliders.sliders(archive()) is None

"""What another number of threads promises, and where it is written."""

from __future__ import annotations

import pytest
from optimize_builders import make_context, make_measurement

from unstall.optimize.remedies import threads
from unstall.optimize.source.errors import NotApplicable
from unstall.records.model import ModelMeasurement


def test_threads_promise_no_more_than_the_models_share():
    for model in (0.0, 0.3, 1.0):
        predicted, _ = threads.predict(model, 1, 8, contended=False)
        assert 1 <= predicted <= 1 / (1 - model * 0.999) + 1e-9


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ('"""Doc."""\n\nimport torch\nfrom x import y\n\nz = 1\n', "torch.set_num_threads(2)"),
        ("import torch as th\nz = 1\n", "th.set_num_threads(2)"),
        ("import numpy\n", None),
    ],
)
def test_the_count_is_set_after_the_imports_or_at_run_time(tmp_path, source, line):
    script = tmp_path / "train.py"
    script.write_text(source)
    measurement = make_measurement(model=ModelMeasurement(threads=1), phases={"forward": 0.9})
    [proposal] = threads.REMEDY.propose(make_context(tmp_path, script=script, measurement=measurement))
    assert proposal.settings == {"threads": 2} and proposal.predicted > 1.2
    assert (proposal.sources is None) is (line is None)
    if proposal.sources is not None:
        assert f"\n\n{line}\n" in proposal.sources.bytes_of(script).decode()


def test_on_a_gpu_threads_are_left_alone():
    with pytest.raises(NotApplicable, match="GPU"):
        threads.REMEDY.propose(make_context(measurement=make_measurement(model=ModelMeasurement(device="cuda:0"))))

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from unstall.records import report as r
from unstall.report import tensorboard


def scalars(directory: Path) -> dict[str, list[tuple[int, float]]]:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(directory))
    accumulator.Reload()
    return {
        tag: [(event.step, accumulator_value(event)) for event in accumulator.Tensors(tag)]
        for tag in accumulator.Tags()["tensors"]
    } | {
        tag: [(event.step, event.value) for event in accumulator.Scalars(tag)] for tag in accumulator.Tags()["scalars"]
    }


def accumulator_value(event) -> float:
    return event.tensor_proto.float_val[0]


def test_scalars_can_be_read_back(input_bound: r.Report, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    tensorboard.write(input_bound, [(12, 0.02), (13, 0.03)], tmp_path / "tb")
    read = scalars(tmp_path / "tb")
    assert read["unstall/step_seconds"] == [(12, pytest.approx(0.02)), (13, pytest.approx(0.03))]
    assert read["unstall/share/data_wait"] == [(13, pytest.approx(0.834))]
    assert read["unstall/headroom"] == [(13, pytest.approx(4.13))]


def test_no_steps_no_headroom(no_steps: r.Report, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    tensorboard.write(no_steps, [], tmp_path)
    assert scalars(tmp_path) == {}


def test_without_tensorboard_the_error_says_what_to_install(
    input_bound: r.Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto", None)
    with pytest.raises(RuntimeError, match=r'pip install "unstall\[tensorboard\]"'):
        tensorboard.write(input_bound, [], tmp_path / "tb")
    assert not (tmp_path / "tb").exists()


def test_no_heavy_import() -> None:
    code = "import sys, unstall.report.tensorboard; print({'tensorboard', 'torch'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"

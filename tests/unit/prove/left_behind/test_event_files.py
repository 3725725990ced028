"""What TensorBoard's files say."""

from __future__ import annotations

import pytest
import torch

from unstall.prove.left_behind.effects import Effects, written
from unstall.prove.left_behind.effects_comparison import EffectsComparison
from unstall.prove.left_behind.event_files import as_text

tensorboard = pytest.importorskip("torch.utils.tensorboard")


def log(folder, values, *, histogram=()):
    writer = tensorboard.SummaryWriter(folder)
    for step, value in enumerate(values):
        writer.add_scalar("loss", value, step)
    for step, numbers in enumerate(histogram):
        writer.add_histogram("weights", numbers, step)
    writer.close()
    return next(folder.iterdir())


def test_a_line_for_each_value(tmp_path):
    path = log(tmp_path / "a", [0.5, 0.25], histogram=[torch.ones(4)])
    with path.open("rb") as file:
        lines = as_text(file).decode().splitlines()
    assert lines[:2] == ["0 loss 0.5", "1 loss 0.25"] and lines[2].startswith("0 weights histo ")


@pytest.mark.parametrize("content", [b"x" * 40, (5).to_bytes(8, "little") + b"1234" + b"\xff" * 9])
def test_what_is_none_is_read_as_bytes(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with (tmp_path / "a").open("rb") as file:
        assert as_text(file) in (None, b"")


@pytest.mark.parametrize(("values", "is_same"), [([0.5, 0.25], True), ([0.5], False), ([0.5, 0.3], False)])
def test_logs_of_two_runs_are_compared_by_what_they_say(tmp_path, values, is_same):
    effects = []
    for name, logged in (("before", [0.5, 0.25]), ("after", values)):
        log(tmp_path / name, logged)
        effects.append(Effects(0, "", dict(written([("/machine", tmp_path / name)], {}))))
    assert (EffectsComparison(effects[:1]).first(effects[1]) is None) == is_same

"""Coarser arithmetic: where it may be tried, and what is written."""

from __future__ import annotations

import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

from unstall.optimize.case import Unfit
from unstall.optimize.equivalence import Noted, judge
from unstall.optimize.remedies import tf32
from unstall.optimize.remedies.autocast import arithmetic_bound, removed_by, with_autocast
from unstall.optimize.remedies.gradients_to_none import with_none
from unstall.optimize.sources import SourceError, Sources

TRAIN = """
    import torch

    def train(model, loader, criterion, optimizer):
        for x, y in loader:
            # what the model says
            out = model(x)
            loss = criterion(out, y)
            optimizer.zero_grad(set_to_none=False)
            loss.backward()  # line 10
            optimizer.step()
"""


def write(tmp_path, source):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(source).lstrip())
    return path


def test_autocast_holds_the_model_and_the_loss_only(tmp_path):
    path = write(tmp_path, TRAIN)
    text = with_autocast(Sources(), path, 6, 9, "cpu").bytes_of(path).decode()
    block = """
        # what the model says
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(x)
            loss = criterion(out, y)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()  # line 10
"""
    assert block in text


def test_autocast_at_module_level(tmp_path):
    path = write(tmp_path, "import torch\nloss = model(x).sum()\nloss.backward()\n")
    text = with_autocast(Sources(), path, 2, 3, "cuda").bytes_of(path).decode()
    assert 'with torch.autocast("cuda", dtype=torch.bfloat16):\n    loss = model(x).sum()\nloss.backward()' in text


@pytest.mark.parametrize(
    "source",
    ["model(x).sum().backward()\n", "if x:\n    loss = model(x)\nloss.backward()\n"],
)
def test_autocast_needs_the_loss_apart_from_backward(tmp_path, source):
    path = write(tmp_path, source)
    lines = source.count("\n")
    with pytest.raises(SourceError, match="one block"):
        with_autocast(Sources(), path, min(2, lines), lines, "cpu")


@pytest.mark.parametrize(
    ("flags", "saves"), [({"avx2"}, False), ({"avx512_bf16", "avx2"}, True), ({"amx_bf16", "avx512_bf16"}, True)]
)
def test_bfloat16_needs_instructions(flags, saves):
    assert (removed_by(frozenset(flags)) is not None) is saves


def test_a_model_far_below_the_peak_gains_little():
    assert (
        arithmetic_bound(0.03) == pytest.approx(0.1) and arithmetic_bound(0.9) == 1 and 0 < arithmetic_bound(None) < 1
    )


def test_coarse_arithmetic_has_its_own_tolerance_but_not_for_whole_numbers():
    import numpy as np

    def noted(values):
        return [Noted("loss.0", 0, str(values.dtype), values.shape, values.tobytes(), values.tobytes())]

    one, other = np.array([1.0], dtype="float32"), np.array([1.01], dtype="float32")
    assert not judge(noted(one), noted(other), "close").equivalent
    assert judge(noted(one), noted(other), "close", arithmetic=["bfloat16"]).equivalent
    assert not judge(noted(one), noted(other), "exact", arithmetic=["bfloat16"]).equivalent
    one, other = np.array([1000]), np.array([1001])
    assert not judge(noted(one), noted(other), "close", arithmetic=["bfloat16"]).equivalent


def case(path, device):
    model = SimpleNamespace(device=device, dtype="torch.float32")
    program = SimpleNamespace(script=path, owns=lambda path: True)
    return SimpleNamespace(
        measurement=SimpleNamespace(model=model), program=program, sources=Sources(), share=lambda *phases: 0.8
    )


def test_tf32_is_for_gpus(tmp_path):
    path = write(tmp_path, "import torch\nx = 1\n")
    assert isinstance(tf32.propose(case(path, "cpu")), Unfit)
    [proposal] = tf32.propose(case(path, "cuda:0"))
    assert b'torch.set_float32_matmul_precision("high")' in proposal.sources.bytes_of(path)
    assert proposal.arithmetic == "tf32" and proposal.predicted > 1.1
    Path(path).write_bytes(proposal.sources.bytes_of(path))
    assert isinstance(tf32.propose(case(path, "cuda:0")), Unfit)


def test_gradients_are_dropped_instead_of_filled(tmp_path):
    path = write(tmp_path, TRAIN)
    sources, lines = with_none(Sources(), path)
    assert b"optimizer.zero_grad()\n" in sources.bytes_of(path) and lines == [8]
    path.write_bytes(sources.bytes_of(path))
    assert with_none(Sources(), path) is None

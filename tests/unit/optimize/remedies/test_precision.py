"""Coarser arithmetic: where it may be tried, and what is written."""

from __future__ import annotations

import textwrap

import pytest

from unstall.optimize.remedies.autocast import removed_by, with_autocast
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.files import Sources

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
    text = with_autocast(Sources().module(path), 6, 9, "cpu").code
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
    text = with_autocast(Sources().module(path), 2, 3, "cuda").code
    assert 'with torch.autocast("cuda", dtype=torch.bfloat16):\n    loss = model(x).sum()\nloss.backward()' in text


@pytest.mark.parametrize(
    "source",
    ["model(x).sum().backward()\n", "if x:\n    loss = model(x)\nloss.backward()\n"],
)
def test_autocast_needs_the_loss_apart_from_backward(tmp_path, source):
    path = write(tmp_path, source)
    lines = source.count("\n")
    with pytest.raises(NotApplicable, match="one block"):
        with_autocast(Sources().module(path), min(2, lines), lines, "cpu")


@pytest.mark.parametrize(
    ("flags", "saves"), [({"avx2"}, False), ({"avx512_bf16", "avx2"}, True), ({"amx_bf16", "avx512_bf16"}, True)]
)
def test_bfloat16_needs_instructions(flags, saves):
    assert (removed_by(frozenset(flags)) is not None) is saves

"""The loops over tensors that a step falls into become one call each; those that take nothing are left."""

from __future__ import annotations

import pytest
from optimize_builders import make_context, make_report

from unstall.optimize.remedies.vectorize_tensors import REMEDY
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.files import Sources
from unstall.records.report import Hotspot

PROGRAM = """import torch


def similarity(x, y):
    return torch.dot(x, y) / (x.norm() * y.norm())


def loss(rows):
    total = torch.zeros(())
    for i in range(len(rows)):
        for j in range(len(rows)):
            total = total + similarity(rows[i], rows[j])
    return total


def longest(rows):
    return max(row.norm().item() for row in rows)
"""


def context_of(tmp_path, lines, forward=0.8):
    """A run whose forward pass takes a share of the step, and was seen at these lines: line → share of the samples."""
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    spots = [
        Hotspot(file=str(path), line=line, function="", share=share, phase="forward") for line, share in lines.items()
    ]
    phases = {"forward": forward, "backward": 1 - forward}
    report = make_report(hotspots=spots, phases=phases)
    return make_context(tmp_path, report=report, sources=Sources()), path


def test_lines_inside_a_loop_and_in_what_it_calls_are_one_proposal(tmp_path):
    context, path = context_of(tmp_path, {5: 0.5, 12: 0.3, 17: 0.2})
    (proposal,) = REMEDY.propose(context)
    assert proposal.title == "the loop of loss (train.py:10) with torch.vmap"
    assert proposal.predicted == pytest.approx(1 / (1 - 0.9 * 0.64))  # 0.8 of the samples, of a phase of 0.8
    space: dict = {}
    exec(proposal.sources.module(path).text, space)
    original: dict = {}
    exec(PROGRAM, original)
    rows = space["torch"].arange(12.0).reshape(4, 3)
    assert space["loss"](rows) == pytest.approx(original["loss"](rows))
    assert "vmap" in space["loss"].__code__.co_names


def test_a_loop_of_a_small_share_is_left(tmp_path):
    context, _ = context_of(tmp_path, {12: 1.0}, forward=0.02)
    with pytest.raises(NotApplicable, match="the loop of loss takes"):
        REMEDY.propose(context)

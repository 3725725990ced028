"""Activation checkpointing turned off: which calls, and where memory is too small for it."""

from __future__ import annotations

import pytest
from factory import measurement, stack
from optimize_builders import make_context, make_finding, make_report

from unstall.diagnose.patterns.recompute_bound import CHECKPOINTING
from unstall.optimize.remedies.keep_activations import REMEDY
from unstall.optimize.source.errors import NotApplicable
from unstall.records.measurements import MemoryMeasurement
from unstall.records.model import ModelMeasurement
from unstall.records.observations import Frame

SOURCE = """
from torch.utils.checkpoint import checkpoint


def forward(self, x):
    for block in self.blocks:
        x = checkpoint(block, x, self.mask, use_reentrant=False)
    return x
"""
REPORT = make_report(findings=[make_finding("recompute-bound", cause=CHECKPOINTING, share=0.4)])


def changed(tmp_path, source, *, peak=2**30, available=2**34, device="cpu", report=REPORT):
    script, net = tmp_path / "train.py", tmp_path / "net.py"
    script.write_text("import net\n")
    net.write_text(source)
    seen = stack(Frame("<module>", str(script), 1), Frame("forward", str(net), 7))
    measured = measurement(
        {"forward": 0.01, "backward": 0.03},
        samples=[seen],
        memory=MemoryMeasurement(rss_peak=peak, available=available),
        model=ModelMeasurement(device=device),
    )
    (proposal,) = REMEDY.propose(make_context(tmp_path, script=script, report=report, measurement=measured))
    return proposal, proposal.sources.bytes_of(net).decode()


def test_what_was_checkpointed_is_called(tmp_path):
    proposal, source = changed(tmp_path, SOURCE)
    assert proposal.title == "activations are kept (net.py:7)"
    assert proposal.predicted == pytest.approx(1 / 0.6)
    assert source == SOURCE.replace("checkpoint(block, x, self.mask, use_reentrant=False)", "block(x, self.mask)")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch.utils.checkpoint as c\ny = c.checkpoint(f, x)\n", "y = f(x)"),
        (
            "from torch.utils import checkpoint\ny = checkpoint.checkpoint(lambda a: a * 2, x, use_reentrant=True)\n",
            "y = (lambda a: a * 2)(x)",
        ),
        ("from torch.utils.checkpoint import checkpoint as c\ny = c(self.block, *xs, scale=2, debug=True)\n",
         "y = self.block(*xs, scale=2)"),
        ("from torch.utils.checkpoint import checkpoint\ny = checkpoint(f, checkpoint(g, x))\n", "y = f(g(x))"),
        ("model.gradient_checkpointing_enable()\n", "pass"),
        ("args = TrainingArguments(out, gradient_checkpointing=True)\n",
         "args = TrainingArguments(out, gradient_checkpointing=False)"),
    ],
)  # fmt: skip
def test_however_it_is_spelled(tmp_path, before, after):
    _, source = changed(tmp_path, before)
    assert source.splitlines()[-1] == after


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("from torch.utils.checkpoint import checkpoint\ncheckpoint(f, x, context_fn=some)\n", "line 2 does not say"),
        ("from torch.utils.checkpoint import checkpoint\ncheckpoint(*given)\n", "line 2 does not say"),
        ("from mine import checkpoint\ncheckpoint(f, x)\n", "not checkpointed in the program's own code"),
        ("args = TrainingArguments(out, gradient_checkpointing=memory_is_short)\n", "not checkpointed in"),
    ],
)
def test_what_is_not_plain_is_left_alone(tmp_path, source, reason):
    with pytest.raises(NotApplicable, match=reason):
        changed(tmp_path, source)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"peak": 2**33}, "8.59 GB of 17.2 GB already"),
        ({"available": 0}, "may not fit"),
        ({"device": "cuda:0"}, "for you to say"),
        ({"report": make_report()}, "no activations again"),
    ],
)
def test_memory_comes_first(tmp_path, how, reason):
    with pytest.raises(NotApplicable, match=reason):
        changed(tmp_path, SOURCE, **how)

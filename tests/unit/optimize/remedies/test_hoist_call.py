"""Calls that a loop makes in each turn with the same arguments are made once before it; others stay where they are."""

from __future__ import annotations

import pytest
import torch
from optimize_builders import make_context, make_measurement, make_module

from unstall.optimize.remedies.hoist_call import REMEDY
from unstall.optimize.rewrites.hoist_call import hoisted, invariant_calls
from unstall.optimize.source.errors import NotApplicable
from unstall.records.model import OperatorLine, Recomputation
from unstall.records.observations import Frame

CELL = """import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.conv = nn.Linear(3, 3)

    def layer(self, x):
        self.calls += 1
        return self.conv(x)

    def forward(self, parts, x, bias):
        {body}
        return out
"""


def cell(body):
    return CELL.format(body=body.replace("\n", "\n        "))


def rewritten(source):
    module = make_module(source)
    return hoisted(module, list(invariant_calls(module))).code


def run(source):
    space = {}
    exec(compile(source, "cell.py", "exec"), space)
    torch.manual_seed(0)
    model = space["Cell"]()
    out = model({"a": torch.ones(3), "b": torch.zeros(3)}, torch.randn(3), torch.ones(3))
    values = list(out.values()) if isinstance(out, dict) else list(out)
    return values, model.calls


@pytest.mark.parametrize(
    "body",
    [
        "out = {key: part + self.layer(x) for key, part in parts.items()}",
        "out = [self.layer(x) * part for part in parts.values()]",
        "# of all parts\nout = [part - self.layer(x) + self.layer(x) for part in parts.values()]",
        "out = {}\nfor key, part in parts.items():\n    y = self.layer(x) + bias\n    out[key] = y + part",
        "out = []\nfor part in parts.values():\n    out.append(part + self.layer(x))",
    ],
)
def test_a_call_that_is_the_same_in_each_turn_is_made_once(body):
    source = cell(body)
    changed = rewritten(source)
    (before, often), (after, once) = run(source), run(changed)
    assert all(torch.equal(*pair) for pair in zip(before, after)) and (once, often > 1) == (1, True)
    assert "layer_result = self.layer(x)\n" in changed and changed.count("# of all parts") == source.count("# of all")


@pytest.mark.parametrize(
    "body",
    [
        "out = [self.layer(part) for part in parts.values()]",
        "out = [self.layer(x) for part in parts.values() if part.sum() > 9]",
        "out = [self.layer(x) if part.sum() > 9 else part for part in parts.values()]",
        "out = [part.sum() > 9 and self.layer(x) for part in parts.values()]",
        "out = list(self.layer(x) for part in parts.values())",
        "out = [self.layer(x) for x in parts.values()]",
        "out = [self.layer(x + bias) for part in parts.values()]",
        "out = []\nfor part in parts.values():\n    x = self.layer(x)\n    out.append(x)",
        "out = []\nfor part in parts.values():\n    out.append(self.layer(x))\n    x += part",
        "out = []\nfor part in parts.values():\n    out.append(self.layer(x))\n    x.add_(part)",
        "out = []\nfor part in parts.values():\n    out.append(self.layer(x))\n    self.conv = part",
        "out = []\nfor part in parts.values():\n    if part.sum() > 9:\n        break\n    out.append(self.layer(x))",
        "out = []\nfor part in parts.values():\n    if part.sum() > 9:\n        out.append(self.layer(x))",
        "out = self.layer(x)",
        "out = [torch.relu(x) for part in parts.values()]",
    ],
)
def test_what_may_differ_between_turns_or_not_be_called_stays(body):
    assert rewritten(cell(body)) == cell(body)


def context(tmp_path, again_s):
    path = tmp_path / "cell.py"
    path.write_text(cell("out = {key: part + self.layer(x) for key, part in parts.items()}"))
    frames = (
        Frame("train", str(tmp_path / "train.py"), 3),
        Frame("forward", str(path), 16),
        Frame("f", "/lib/g.py", 2),
    )
    operators = [OperatorLine(frames, 1.0, 0.0, "", again_s), OperatorLine(frames[:1], 1.0 - again_s, 0.0, "", 0.0)]
    measurement = make_measurement(operators=operators)
    step_s = measurement.step.mean
    again = Recomputation(
        frames, there=1.0, seconds=again_s * step_s, operators=9, backward_s=0.0, share=again_s, recurring=0.0
    )
    measurement = make_measurement(operators=operators, recomputation=again)
    return make_context(tmp_path, measurement=measurement)


def test_it_is_proposed_where_the_run_saw_it_computed_again(tmp_path):
    (proposal,) = REMEDY.propose(context(tmp_path, 0.5))
    assert proposal.title == "calls with the same arguments in each turn are made once (cell.py:16)"
    assert proposal.predicted == pytest.approx(1 / (1 - 0.5 * 0.8), rel=0.01)
    with pytest.raises(NotApplicable, match="no loop of your own calls a layer"):
        REMEDY.propose(context(tmp_path, 0.0))

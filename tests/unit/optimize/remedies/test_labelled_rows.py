"""Layers before a loss that ignores rows are given those with a label; where the rows are needed, they stay."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from optimize_builders import make_context, make_measurement, make_module
from torch import nn

from unstall.optimize.remedies.labelled_rows import REMEDY
from unstall.optimize.rewrites.labelled_rows import labelled_losses, selected
from unstall.optimize.source.errors import NotApplicable
from unstall.records.model import ZeroProducts
from unstall.records.observations import Frame

IMPORTS = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n\nPAD = 0\n\n\n"
FORWARD = """\
class FillIn(nn.Module):
    def forward(self, words, labels):
        x = self.layers(words)
        logits = self.head(x)
        return F.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=PAD)
"""
SELECTED = """\
class FillIn(nn.Module):
    def forward(self, words, labels):
        x = self.layers(words)
        has_label = labels != PAD
        logits = self.head(x[has_label])
        return F.cross_entropy(logits.flatten(0, -2), labels[has_label].flatten(), ignore_index=PAD)
"""


def changed(source):
    """The source with the first such loss changed; None where there is none on any line."""
    module = make_module(source)
    for line in range(1, len(source.splitlines()) + 1):
        for found in labelled_losses(module, line):
            return selected(module, found).code
    return None


def fill_in(code):
    """A model with the class of a source."""
    space = {}
    exec(compile(code, "program.py", "exec"), space)
    torch.manual_seed(0)
    model = space["FillIn"]()
    model.layers, model.head = nn.Embedding(11, 4), nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 11))
    return model


def test_the_layers_get_the_rows_that_have_a_label():
    assert changed(IMPORTS + FORWARD) == IMPORTS + SELECTED
    words = torch.randint(11, (3, 7), generator=torch.Generator().manual_seed(1))
    labels = torch.where(torch.arange(7) % 3 == 0, words, 0)
    losses, gradients = [], []
    for code in (FORWARD, SELECTED):
        model = fill_in(IMPORTS + code)
        losses.append(model(words, labels))
        losses[-1].backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    torch.testing.assert_close(*losses)
    torch.testing.assert_close(*gradients)


def loop(*lines, before=""):
    """A function of a training step with these lines."""
    return IMPORTS + before + "def step(model, head, batch, y):\n    x = model(batch)\n" + "".join(f"    {line}\n" for line in lines)  # fmt: skip


@pytest.mark.parametrize(
    ("source", "written"),
    [
        (
            loop("loss = F.cross_entropy(head(x).view(-1, 9), y.view(-1))"),
            ["has_label = y != -100", "head(x[has_label]).view(-1, 9), y[has_label].view(-1)"],
        ),
        (
            loop("out = head(x + 1)", "loss = criterion(out.reshape(-1, 9), y.reshape(-1))",
                 before="criterion = nn.CrossEntropyLoss(ignore_index=3)\n\n\n"),
            ["has_label = y != 3", "head((x + 1)[has_label])", "y[has_label].reshape(-1)"],
        ),
        (
            loop("criterion = nn.CrossEntropyLoss()", "loss = criterion(head(x).view(-1, 9), y.view(-1))",
                 before="def other():\n    criterion = nn.CrossEntropyLoss(reduction='none')\n\n\n"),
            ["has_label = y != -100"],
        ),
        (
            loop("loss = criterion(head(x).view(-1, 9), y.view(-1))",
                 before="def made(pad):\n    return pad\n\n\ncriterion = nn.CrossEntropyLoss(ignore_index=made(0))\n\n\n"),
            ["has_label = y != criterion.ignore_index"],
        ),
        (
            loop("out = head(x)", "print('there')", "loss = nn.CrossEntropyLoss(ignore_index=PAD)(out.flatten(0, 1), batch['y'].flatten())"),
            ["has_label = batch['y'] != PAD", "batch['y'][has_label].flatten()"],
        ),
        (
            loop("# the words", "out = head(x)", "return F.cross_entropy(out.view(-1, out.size(-1)), y.view(-1), reduction='sum')"),
            ["    # the words\n    has_label = y != -100\n    out = head(x[has_label])\n"],
        ),
        (
            loop("has_label = 3", "return F.cross_entropy(head(x).flatten(0, 1), y.flatten())"),
            ["has_label_2 = y != -100"],
        ),
    ],
)  # fmt: skip
def test_losses_are_found_as_people_write_them(source, written):
    code = changed(source)
    assert code is not None and all(part in code for part in written), code


NOT_FOUND = {
    "each row's loss": loop("return F.cross_entropy(head(x).flatten(0, 1), y.flatten(), reduction='none')"),
    "a reduction that is not known": loop("return F.cross_entropy(head(x).flatten(0, 1), y.flatten(), reduction=y)"),
    "what the layers give is returned": loop(
        "out = head(x)", "loss = F.cross_entropy(out.flatten(0, 1), y.flatten())", "return loss, out"
    ),
    "two arguments": loop("return F.cross_entropy(head(x, y).flatten(0, 1), y.flatten())"),
    "labels of pictures": loop("return F.cross_entropy(head(x), y)"),
    "labels made between": loop("out = head(x)", "y = y + 1", "return F.cross_entropy(out.flatten(0, 1), y.flatten())"),
    "labels made later": loop(
        "out = head(x)", "z = y.clone()", "return F.cross_entropy(out.flatten(0, 1), z.flatten())"
    ),
    "shifted labels": loop("return F.cross_entropy(head(x)[:, :-1].flatten(0, 1), y[:, 1:].flatten())"),
    "a loss in one case": loop(
        "out = head(x)", "if len(y):", "    return F.cross_entropy(out.flatten(0, 1), y.flatten())"
    ),
    "results of several heads": loop("return sum(F.cross_entropy(h(x).flatten(0, 1), y.flatten()) for h in head)"),
    "a loss that is not known": loop(
        "return criterion(head(x).flatten(0, 1), y.flatten())", before="criterion = make()\n\n\n"
    ),
    "one of two losses": loop(
        "return criterion(head(x).flatten(0, 1), y.flatten())",
        before="criterion = nn.CrossEntropyLoss()\ncriterion = nn.CrossEntropyLoss(reduction='none')\n\n\n",
    ),
    "no layers": loop("return F.cross_entropy(torch.relu(x).flatten(0, 1), y.flatten())"),
}


@pytest.mark.parametrize("why", NOT_FOUND)
def test_where_all_rows_may_be_needed_nothing_is_changed(why):
    assert changed(NOT_FOUND[why]) is None


def context(tmp_path, products):
    path = tmp_path / "train.py"
    path.write_text(IMPORTS + FORWARD)
    shares = {"forward": 0.4, "backward": 0.4, "other": 0.2}
    return make_context(tmp_path, script=path, measurement=make_measurement(phases=shares, zero_products=products))


def products(tmp_path, *, of_gradients=True, forward=0.8):
    path = str(tmp_path / "train.py")
    frames = (Frame("FillIn.forward", path, 11), Frame("Linear.forward", str(Path(nn.__file__)), 114))
    return ZeroProducts(frames, 0.87, of_gradients, forward=forward, backward=forward)


def test_it_is_proposed_for_the_way_to_the_rows_that_are_of_no_use(tmp_path):
    (proposal,) = REMEDY.propose(context(tmp_path, products(tmp_path)))
    assert proposal.title == "self.head is given the rows that have a label (train.py:11)"
    assert proposal.predicted == pytest.approx(1 / (1 - 0.8 * 0.8))


def test_without_such_rows_it_is_not(tmp_path):
    for given in (None, products(tmp_path, of_gradients=False)):
        with pytest.raises(NotApplicable, match="depends on every row"):
            REMEDY.propose(context(tmp_path, given))
    with pytest.raises(NotApplicable, match=r"take 0\.8 % of the step"):
        REMEDY.propose(context(tmp_path, products(tmp_path, forward=0.01)))

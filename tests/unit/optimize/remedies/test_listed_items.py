"""Numbers that a loop asks for one by one come from a list, and are the same; what is asked otherwise stays."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from optimize_builders import make_context, make_module, make_report

from unstall.optimize.remedies.listed_items import REMEDY
from unstall.optimize.rewrites.listed_items import at_once, item_reads
from unstall.optimize.runtime.listed_items import _listed_items
from unstall.optimize.source.errors import NotApplicable
from unstall.records.report import Hotspot

TRIPLES = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]])


def function(body):
    lines = "\n    ".join(body.splitlines())
    return f"import torch\n\n\ndef look(batch, scores, out):\n    {lines}\n    return out\n"


def rewritten(source):
    module = make_module(source)
    (part,) = [node for node in module.tree.body if type(node).__name__ == "FunctionDef"]
    reads = list(item_reads(module, part))
    return at_once(module, reads).code if reads else source


def run(source, *arguments):
    space = {}
    exec(compile(source, "look.py", "exec"), space)
    return space["look"](*arguments, [])


@pytest.mark.parametrize("kind", [lambda x: x, lambda x: x.numpy(), lambda x: [*x], lambda x: x.double() / 3])
@pytest.mark.parametrize(
    ("body", "listed"),
    [
        ("for row in batch:\n    out.append((row[0].item(), row[1].item()))", "in _listed_items(batch, 2):"),
        ("for i, row in enumerate(batch):\n    out.append(i + row[2].item())", "enumerate(_listed_items(batch, 2))"),
        ("for row, s in zip(batch, scores):\n    out += [row[-1].item(), s.item()]", "zip(_listed_items(batch, 2), _listed_items(scores, 1))"),
        ("for s in scores:\n    out.append(s.item())", "in _listed_items(scores, 1):"),
        ("for row in batch[1:]:\n    out.append(row[0].item() + int(row[1]))", "in _listed_items(batch[1:], 2):"),
        ("# all\nfor i in range(3):\n    out.append(scores[i].item())", "# all\n    scores_items = _listed_items(scores, 1)\n    for"),
        ("for i in range(3):\n    for j in range(3):\n        out.append(batch[i][j].item())", "batch_items[i][j]"),
        ("i = 0\nwhile i < 3:\n    out.append(scores[i].item() * 2)\n    i += 1", "out.append(scores_items[i] * 2)"),
        ("top = scores * 2\nfor i in range(3):\n    out.append(top[i].item())", "top_items = _listed_items(top, 1)"),
    ],
)  # fmt: skip
def test_numbers_of_any_kind_are_the_same(body, listed, kind):
    source = function(body)
    changed = rewritten(source)
    assert listed in changed and ".item()" not in changed[changed.index("def look") :]
    for scores in (torch.tensor([0.1, 2.5, -3.0]), np.array([1, 2, 3])):
        before, after = (run(text, kind(TRIPLES), scores) for text in (source, changed))
        assert before == after and list(map(type, before)) == list(map(type, after))


def test_items_of_several_axes_at_once_and_of_an_attribute():
    source = function("for i in range(3):\n    out.append(batch.table[i, i - 1].item())")
    assert "table_items = _listed_items(batch.table, 2)" in rewritten(source)
    table = type("Batch", (), {"table": TRIPLES})
    assert run(rewritten(source), table, None) == run(source, table, None) == [3, 4, 8]


@pytest.mark.parametrize(
    "body",
    [
        "for row in batch:\n    out.append((row, row[0].item()))",
        "for row in batch:\n    out.append(row[0].item() + row[1, None].item())",
        "for row in batch:\n    row += 1\n    out.append(row[0].item())",
        "for row in batch:\n    batch[0] = 1\n    out.append(row[0].item())",
        "for i in range(3):\n    scores[i] += 1\n    out.append(scores[i].item())",
        "for i in range(3):\n    scores = scores * 2\n    out.append(scores[i].item())",
        "for i in range(3):\n    scores.add_(1)\n    out.append(scores[i].item())",
        "for name in ('a', 'b'):\n    out.append(batch['x'].item())",
        "for i in range(3):\n    out.append((scores[i] * 2).item())",
        "for i in range(3):\n    out.append(scores.item())",
        "for i in range(3):\n    if i:\n        best = scores\n        out.append(best[i].item())",
        "for i in range(3):\n    out.append(scores[i:].item())",
        "out.append(scores[0].item())",
    ],
)
def test_what_may_be_another_number_or_more_than_one_stays(body):
    assert rewritten(function(body)) == function(body)


def test_what_is_no_tensor_of_so_many_axes_is_asked_item_by_item():
    values = _listed_items({"a": torch.ones(1)}, 1)
    assert values["a"] == 1.0 and len(values) == 1
    assert [*_listed_items(torch.ones(2, 1), 1)] == [1.0, 1.0]
    assert [[*row] for row in _listed_items([torch.arange(2)], 2)] == [[0, 1]]


def context(tmp_path, share):
    path = tmp_path / "train.py"
    path.write_text(function("for i in range(3):\n    out.append(scores[i].item())"))
    spots = [Hotspot(function="look", file=str(path), line=6, share=share, phase="data_wait")]
    phases = {"data_wait": share, "other": 1 - share}
    return make_context(tmp_path, script=path, report=make_report(hotspots=spots, phases=phases))


def test_it_is_proposed_by_the_share_of_its_lines(tmp_path):
    (proposal,) = REMEDY.propose(context(tmp_path, 0.5))
    assert proposal.title == "look reads the numbers of its loops as lists (train.py:6)"
    assert proposal.predicted == pytest.approx(1 / (1 - 0.5 * 0.7))
    with pytest.raises(NotApplicable, match="no hot line of your own asks a tensor for numbers"):
        REMEDY.propose(context(tmp_path, 0.01))

"""Joins in a loop, made once behind it: the same values and gradients, and only where nothing else looks at them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from optimize_builders import make_context, make_module, make_report

from unstall.optimize.remedies.join_once import REMEDY
from unstall.optimize.rewrites.join_once import loop_joins, once, refuse_shared
from unstall.optimize.source.errors import AnalysisRefused, NotApplicable
from unstall.optimize.thresholds import JOINING_ONCE_SAVES
from unstall.records.report import Hotspot

GHOST = """import torch


class GhostNorm(torch.nn.Module):
    def forward(self, x):
        chunks = x.chunk(4)
        res = torch.Tensor([]).to(x.device)
        # one after the other
        for part in chunks:
            y = self.norm(part)
            res = torch.cat([res, y], dim=0)  # joined

        return res
"""


def rewritten(source):
    module = make_module(source)
    (found,) = loop_joins(module)
    refuse_shared(module, found)
    return once(module, found).code


def test_the_pieces_are_collected_and_the_rest_of_the_file_stays():
    assert rewritten(GHOST) == GHOST.replace(
        """        # one after the other
        for part in chunks:
            y = self.norm(part)
            res = torch.cat([res, y], dim=0)  # joined
""",
        """        # one after the other
        res_parts = []
        for part in chunks:
            y = self.norm(part)
            res_parts.append(y)  # joined
        if res_parts:
            res = torch.cat([res, *res_parts], dim=0)
""",
    )


def test_values_and_gradients_are_the_same_bit_for_bit():
    results = []
    for source in (GHOST, rewritten(GHOST)):
        space: dict = {}
        exec(compile(source, "ghost.py", "exec"), space)
        torch.manual_seed(0)
        layer = space["GhostNorm"]()
        layer.norm = torch.nn.BatchNorm1d(3)
        x = torch.randn(16, 3, requires_grad=True)
        out = layer(x)
        (out**2).sum().backward()
        results.append((out, x.grad, layer.norm.weight.grad))
    assert all(torch.equal(before, after) for before, after in zip(*results))


@pytest.mark.parametrize(
    "join",
    [
        "x = np.concatenate([x, piece(i)])",
        "x = np.concatenate((x, piece(i)), axis=0)",
        "x = np.vstack([x, piece(i)])",
        "x = np.hstack([x, piece(i)])",
    ],
)
@given(turns=st.integers(0, 6))
def test_every_spelling_gives_the_same_in_any_number_of_turns(join, turns):
    source = f"import numpy as np\ndef build(turns, piece):\n    x = np.zeros((2, 3))\n    for i in range(turns):\n        {join}\n    return x\n"
    results = []
    for text in (source, rewritten(source)):
        space: dict = {}
        exec(compile(text, "build.py", "exec"), space)
        results.append(space["build"](turns, lambda i: np.full((2, 3), i, dtype=np.float32)))
    assert results[0].dtype == results[1].dtype
    assert np.array_equal(*results)


@pytest.mark.parametrize(
    "body",
    [
        "        x = torch.cat([x, f(i)])\n        log(x)",
        "        x = torch.cat([x, f(x)])",
        "        if len(x) < 9:\n            x = torch.cat([x, f(i)])",
        "        x = torch.cat([x, f(i)]); g(i)",
        "        x = np.append(x, f(i))",
        "        y = torch.cat([x, f(i)])",
    ],
)
def test_a_loop_that_looks_at_what_it_joins_is_none(body):
    source = f"import torch\nimport numpy as np\ndef build(n, x):\n    for i in range(n):\n{body}\n    return x\n"
    assert not list(loop_joins(make_module(source)))


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("x = torch.zeros(0)\ndef show():\n    print(x)\nfor i in range(9):\n    x = torch.cat([x, f(i)])\n", "another function"),
        ("def f(n, x):\n    show = lambda: x\n    for i in range(n):\n        x = torch.cat([x, g(i)])\n", "another function"),
        ("def f(n):\n    global x\n    for i in range(n):\n        x = torch.cat([x, g(i)])\n", "shared"),
        ("def f(n, x):\n    for i in n:\n        x = torch.cat([x, g(i)])\n    else:\n        h()\n", "`else`"),
        ("def f(n, x):\n    try:\n        for i in n:\n            x = torch.cat([x, g(i)])\n    except ValueError:\n        return x\n", "error"),
        ("def f(n, x, y):\n    for i in n:\n        y.fill_(i)\n        x = torch.cat([x, y])\n", "in place"),
    ],
)  # fmt: skip
def test_what_somebody_else_may_see_is_refused(source, why):
    with pytest.raises(AnalysisRefused, match=why):
        rewritten(f"import torch\n{source}")


@pytest.mark.parametrize(("share", "found"), [(0.4, True), (0.01, False)])
def test_the_hot_loop_is_proposed(tmp_path, share, found):
    (tmp_path / "train.py").write_text(GHOST)
    line = GHOST.splitlines().index("            res = torch.cat([res, y], dim=0)  # joined") + 1
    spot = Hotspot(function="GhostNorm.forward", file=str(tmp_path / "train.py"), line=line, share=share, where="main")
    context = make_context(tmp_path, report=make_report(hotspots=[spot]))
    if not found:
        with pytest.raises(NotApplicable):
            REMEDY.propose(context)
        return
    (proposal,) = REMEDY.propose(context)
    assert "res is joined once" in proposal.title
    assert proposal.predicted == pytest.approx(1 / (1 - 0.4 * JOINING_ONCE_SAVES))


def test_the_reason_for_a_refusal_names_the_file(tmp_path):
    source = GHOST.replace("            res = torch.cat", "            y.fill_(1)\n            res = torch.cat")
    (tmp_path / "train.py").write_text(source)
    spot = Hotspot(function="forward", file=str(tmp_path / "train.py"), line=12, share=0.4, where="main")
    with pytest.raises(NotApplicable, match=r"^train\.py: line 9: y is changed in place in the loop$"):
        REMEDY.propose(make_context(tmp_path, report=make_report(hotspots=[spot])))

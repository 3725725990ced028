"""Attention is found in the forms that people write it in, and what stands in its place computes the same."""

from __future__ import annotations

import textwrap

import pytest
from optimize_builders import make_module

from unstall.optimize.attention import find
from unstall.optimize.remedies.fused_attention import with_fused
from unstall.optimize.source.files import Sources

HEAD = "import math\nimport torch\nimport torch.nn.functional as F\n\n\n"

FORMS = {
    "matrices": """
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        weights = F.softmax(scores, dim=-1)
        return weights @ v
    """,
    "one line": "return torch.softmax(torch.matmul(q, k.mT) * 0.5, -1).matmul(v)",
    "no scale": "out = (q @ k.transpose(2, 3)).softmax(-1) @ v\nreturn out.flatten(2)",
    "masked": """
        scores = torch.matmul(q, k.transpose(-1, -2)) * 0.25  # scaled
        scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = scores.softmax(dim=-1)
        out = torch.matmul(weights, v)
        return out.transpose(1, 2)
    """,
    "two masks": """
        s = q @ k.transpose(-2, -1)
        s = s.masked_fill(~mask, -1e9)
        s = s.masked_fill(torch.ones_like(mask).triu(1), -float("inf"))
        return s.softmax(-1) @ v
    """,
    "mask if there is one": """
        s = q @ k.transpose(-2, -1) / 2
        if mask is not None:
            s = s.masked_fill(~mask, float("-inf"))
        w = F.softmax(s, dim=-1)
        return w @ v
    """,
    "bias": "s = q @ k.transpose(-2, -1) / 2 + mask.float()\nreturn s.softmax(-1) @ v",
    "where": "s = torch.where(mask, q @ k.mT, -math.inf)\nreturn s.softmax(-1) @ v",
    "broadcast": """
        scores = (q.unsqueeze(3) * k.unsqueeze(2)).sum(-1) / q.shape[-1] ** 0.5
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        mixed = (weights.unsqueeze(-1) * v.unsqueeze(2)).sum(3)
        return mixed
    """,
}


def function(body):
    return f"{HEAD}def f(q, k, v, mask=None):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


def run(text):
    space = {}
    exec(compile(text, "model.py", "exec"), space)
    return space["f"]


@pytest.mark.parametrize("name", FORMS)
def test_the_same_is_computed(tmp_path, name):
    torch = pytest.importorskip("torch")
    path = tmp_path / "model.py"
    path.write_text(function(FORMS[name]))
    [attention] = find(Sources().module(path))
    assert attention.spread is (name == "broadcast")
    changed = with_fused(Sources().module(path), attention).code
    assert "scaled_dot_product_attention" in changed and "softmax" not in changed
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 5, 4) for _ in range(3))
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    for given in [mask] if name != "mask if there is one" else [mask, None]:
        before, after = run(path.read_text())(q, k, v, given), run(changed)(q, k, v, given)
        assert torch.allclose(before, after, atol=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        "w = (q @ k.mT).softmax(-1)\nreturn w @ v, w",  # the weights are wanted
        "w = (q @ k.mT).softmax(-2)\nreturn w @ v",  # over the queries
        "s = q @ k.mT\ns = s.clamp(max=3)\nreturn s.softmax(-1) @ v",
        "s = q @ k.mT\nfor _ in range(2):\n    s = s * 2\nreturn s.softmax(-1) @ v",
        "s = q @ k.mT\nq = q + 1\nreturn s.softmax(-1) @ v + q",  # q is another by then
        "s = (q @ k.mT + mask) / 2\nreturn s.softmax(-1) @ v",  # the bias is scaled
        "s = q @ k.mT\ns = s.masked_fill(mask, 0.0)\nreturn s.softmax(-1) @ v",
        "return q @ k @ v",
        "s = q @ k.transpose(1, 2)\nreturn s.softmax(-1) @ v",
        "s = q @ k.mT\nif mask is not None:\n    s = s * 2\nreturn s.softmax(-1) @ v",  # scaled at times
        "return (q @ k.mT).softmax(-1, dtype=torch.float32) @ v",
    ],
)
def test_what_the_operator_does_not_compute_is_left(body):
    assert find(make_module(function(body))) == []


def test_comments_stay_and_what_led_to_the_result_goes(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(function("# how alike\ns = q @ k.mT\n# mixed\nout = s.softmax(-1) @ v  # the result\nreturn out"))
    [attention] = find(Sources().module(path))
    text = with_fused(Sources().module(path), attention).code
    line = "    out = F.scaled_dot_product_attention(q, k, v, scale=1.0)  # the result\n"
    assert f"    # mixed\n{line}    return out\n" in text and "s = q" not in text


def test_a_method_with_dropout(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(
        "from torch import nn\n\n\nclass Attention(nn.Module):\n    def forward(self, q, k, v):\n"
        "        w = nn.functional.softmax(q @ k.mT * self.scale, dim=-1)\n        w = self.dropout(w)\n        return w @ v\n"
    )
    [attention] = find(Sources().module(path))
    assert attention.cls == "Attention"
    text = with_fused(Sources().module(path), attention).code
    assert "dropout_p=self.dropout.p if self.training else 0.0, scale=self.scale" in text
    assert "return nn.functional.scaled" in text and "import torch\n" not in text


def test_imports_under_other_names(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(
        "import torch as th\nfrom torch.nn import functional as fn\n\n\ndef f(q, k, v):\n"
        "    w = fn.softmax(th.matmul(q, k.mT), dim=-1)\n    return th.matmul(w, v)\n"
    )
    [attention] = find(Sources().module(path))
    text = with_fused(Sources().module(path), attention).code
    assert "return fn.scaled_dot_product_attention(q, k, v, scale=1.0)" in text

"""A loop over tensors must give the same tensors and gradients as torch.vmap of one turn, or be refused."""

from __future__ import annotations

import re
import textwrap

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from optimize_builders import make_module

from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.vectorize import mapped

HEAD = """import torch
import torch.nn.functional as F
from torch import nn

layer = nn.Linear(3, 2)
noise = nn.Dropout(0.5)
names = ["a", "b", "c", "d"]

def distance(x, y):
    difference = x - y
    return (difference * difference).sum()

def printed(x):
    print(x)
    return x

def f(a, b, q, labels):
"""

LOOPS = {
    "pairs": """
        out = torch.zeros(len(a), len(b))
        for i in range(len(a)):
            for j in range(len(b)):
                out[i, j] = (a[i] - b[j]).norm()
        return out
    """,
    "pairs of a function, written the other way round": """
        out = torch.zeros(len(b), a.shape[0])
        for i in range(a.shape[0]):
            x = a[i] * 2
            for j in range(len(b)):
                out[j][i] = distance(x, b[j])
        return out
    """,
    "a triangle's mean": """
        total = 0.0
        pairs = 0
        n = len(a)
        for i in range(n - 1):
            for j in range(i + 1, n):
                total = total + torch.exp(-distance(a[i], a[j]))
                pairs += 1
        return total / pairs
    """,
    "a triangle, filled": """
        n = len(a)
        out = torch.zeros(n, n)
        for i in range(n):
            for j in range(i):
                out[i, j] = torch.dot(a[i], a[j])
        return out
    """,
    "means of masks": """
        centre = a.new_zeros(3, a.shape[1])
        for c in range(3):
            mask = labels == c
            centre[c] = a[mask].mean(0)
        return centre
    """,
    "a stacked comprehension": "return torch.stack([F.softmax(a[i], dim=0) * 2 for i in range(len(a))], dim=1)",
    "heads, joined": "return torch.cat([torch.relu(q[:, h]) for h in range(q.shape[1])], dim=-1)",
    "a layer for each row of two": """
        outputs = []
        for x, y in zip(a, b):
            outputs.append(layer(x) * layer(y))
        return torch.stack(outputs)
    """,
    "a sum of rows": "return sum((x - 1).abs().max() for x in a)",
    "the last dimension": "return torch.stack([q[..., h].mean() for h in range(4)])",
    "time steps from the second": """
        out = torch.empty(2, 3, 5)
        for t in range(5):
            out[:, :, t] = q[:, :, t].sum(-1)
        return out
    """,
    "a contrastive loss": """
        total, pairs = a.new_zeros(()), 0
        for i in range(len(a)):
            for j in range(i + 1, len(a)):
                gap = (a[i] - a[j]).norm()
                if labels[i] == labels[j]:
                    total = total + gap**2
                else:
                    total = total + torch.clamp(1 - gap, min=0) ** 2
                pairs += 1
        return total / pairs
    """,
    "pairs of one class, but for those of one with itself": """
        total, pairs = a.new_zeros(()), 0
        for i in range(len(a)):
            for j in range(len(a)):
                if i == j:
                    continue
                gap = distance(a[i], b[j])
                if labels[i] == labels[j] and gap > 0.1:
                    scaled = gap * 2
                    total += scaled
                    pairs += 1
        return total / max(pairs, 1)
    """,
    "a chosen sum, written the other way round": """
        total = a.new_zeros(())
        for i in range(len(a)):
            if labels[i] == 1:
                total = a[i].sum() + total
        return total
    """,
    "a chosen cell": """
        out = torch.zeros(len(a))
        for i in range(len(a)):
            x = a[i]
            y = x * 3
            if x[0] > x[1]:
                y = y.exp()
                out[i] = y.sum()
            else:
                out[i] = y.prod()
        return out
    """,
    "two results of a turn": """
        low = torch.empty(len(a))
        high = torch.empty(len(a))
        for i in range(len(a)):
            row = a[i] ** 2
            low[i] = row.min()
            high[i] = row.max()
        return low - high
    """,
}

REFUSED = {
    "decision": ("for x in a:\n    if x.sum() > 0:\n        values.append(x)", "depends on a decision"),
    "flag": ("for x in a:\n    if layer.training:\n        total = total + x", "not known to be a comparison"),
    "own-decision": ("for x in a:\n    y = x.sum()\n    if y > 0:\n        y = -y", "changes what decided"),
    "printing": ("for x in a:\n    if x.sum() > 0:\n        print(x)\n        total = total + x", "depends on a decision"),
    "number": ("for x in a:\n    values.append(x.sum().item())", "item"),
    "random": ("for x in a:\n    values.append(torch.rand_like(x) + x)", "random"),
    "dropout": ("for x in a:\n    values.append(F.dropout(x))", "random"),
    "output": ("for x in a:\n    values.append(printed(x))", "printed does more than compute"),
    "in-place": ("for x in a:\n    values.append(x.add_(1))", "changes what it is given"),
    "carried": ("for x in a:\n    total = total * 2 + x", "total"),
    "own-cell": ("for i in range(4):\n    a[i] = a[i] + a[i - 1]", "a is not made anew"),
    "argument": ("for i in range(4):\n    b[i] = a[i]", "b is not made anew"),
    "alias": ("out = torch.zeros(4, 3)\nview = out\nfor i in range(4):\n    out[i] = view[i] + 1", "out is used before"),
    "later": ("for x in a:\n    y = x * 2\n    values.append(y)\nreturn y", "y is read after the loop"),
    "strings": ("for x in names:\n    values.append(x.lower())", "names is no tensor"),
    "data": ("for c in range(3):\n    values.append(a[labels == c])", "how many rows"),
    "break": ("for x in a:\n    values.append(x)\n    break", "Break"),
    "unknown": ("for x in a:\n    values.append(measure(x))", "what measure does is not known"),
    "arithmetic": ("for i in range(4):\n    values.append(a[i] * i)", "computes with the number i"),
    "else": ("for x in a:\n    values.append(x)\nelse:\n    values.clear()", "else"),
}  # fmt: skip


def module_of(body):
    text = HEAD + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"
    inner = [number for number, line in enumerate(text.splitlines(), 1) if re.search(r"\bfor\b", line)][-1]
    return make_module(text), inner


def both(body):
    """The function as written, and with its loop replaced."""
    module, line = module_of(body)
    changed = mapped(module, line).tree.code
    functions = []
    for text in (module.text, changed):
        torch.manual_seed(0)
        space: dict = {}
        exec(compile(text, "module.py", "exec"), space)
        functions.append(space["f"])
    return (*functions, changed[changed.index("def f(") :])


@example("a chosen sum, written the other way round", 0)
@settings(max_examples=8, deadline=None)
@given(st.sampled_from(sorted(LOOPS)), st.integers(0, 2**31 - 1))
def test_values_and_gradients_are_those_of_the_loop(name, seed):
    torch.manual_seed(seed)
    shapes = [(4, 3), (4, 3), (2, 3, 5, 4)]
    inputs = [torch.randn(shape) for shape in shapes]
    labels = torch.tensor([0, 1, 2, 1])
    results = []
    for function in both(LOOPS[name])[:2]:
        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        result = function(*leaves, labels)
        gradients = torch.autograd.grad(result.square().sum(), leaves, allow_unused=True)
        results.append((result, *(torch.zeros(()) if one is None else one for one in gradients)))
    for slow, fast in zip(*results):
        torch.testing.assert_close(fast, slow)


@pytest.mark.parametrize("name", LOOPS)
def test_the_loop_is_gone(name):
    *_, changed = both(LOOPS[name])
    assert "for " not in changed and "vmap" in changed


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_differ_is_refused_with_its_reason(name):
    body, reason = REFUSED[name]
    module, line = module_of("values = []\ntotal = torch.zeros(3)\n" + body)
    with pytest.raises(AnalysisRefused, match=re.escape(reason)):
        mapped(module, line)


def test_a_line_in_the_called_function_finds_the_loop_that_calls_it():
    module, _ = module_of(LOOPS["a triangle's mean"])
    line = next(number for number, text in enumerate(module.text.splitlines(), 1) if "difference * difference" in text)
    loop = mapped(module, line)
    assert loop.function == "f" and any(first <= line <= last for first, last in loop.lines)


def test_random_numbers_that_only_running_shows_are_refused_by_torch():
    """A layer that is random in training only: in evaluation the loop may be mapped."""
    _, fast, _ = both("return torch.stack([noise(x) for x in a])")
    with pytest.raises(RuntimeError, match="random"):
        fast(torch.ones(4, 3), None, None, None)
    fast.__globals__["noise"].eval()
    assert torch.equal(fast(torch.ones(4, 3), None, None, None), torch.ones(4, 3))


def test_a_module_without_torch_is_left_alone():
    with pytest.raises(AnalysisRefused, match="does not import torch"):
        mapped(make_module("def f(x):\n    for y in x:\n        print(y)\n"), 3)

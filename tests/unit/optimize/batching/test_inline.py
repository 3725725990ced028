"""A function put in the place of its call does what the call did, and its loop can then run ahead."""

from __future__ import annotations

import ast
import textwrap

import pytest
from optimize_builders import make_module

from unstall.optimize.batching.inline import inlined
from unstall.optimize.batching.loops import split_loop
from unstall.optimize.batching.writer import with_batches
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.places import CallSite

PREDICTOR = """
    import torch

    class Predictor:
        def __init__(self, model):
            self.model = model
            self.labels = ["even", "odd"]

        def predict(self, path, scale=1.0):
            \"\"\"The label of a file.\"\"\"
            image = torch.full((2,), float(path))  # read it
            x = image.unsqueeze(0) * scale
            with torch.no_grad():
                y = self.model(x)
            return self.labels[int(y[0, 0]) % 2]

    def f(predictor, paths):
        image = None
        found = {}
        for path in paths:
            found[path] = predictor.predict(path, 1.0)
        return found, image
"""

HELPER = """
    import torch

    @torch.inference_mode()
    def score(net, row):
        out = net(row[None])
        return float(out.sum())

    def f(model, rows):
        out = 0
        total = []
        for row in rows:
            if True:
                pass
            total.append(score(model, row * 1.0) + out)
        return total
"""


def call_of(path, text, code, function):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node) == code:
            span = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
            return CallSite(path, node.lineno, function, span)
    raise AssertionError(code)


def run(text):
    space = {}
    exec(compile(text, "infer.py", "exec"), space)
    return space


def changed(tmp_path, source, outer, inner, function):
    path = tmp_path / "infer.py"
    text = textwrap.dedent(source).lstrip()
    tree, call = inlined(make_module(text), call_of(path, text, outer, "f"), call_of(path, text, inner, function))
    module = make_module(tree.code)
    return text, with_batches(module, split_loop(module, call), 4, stacked=False).code


def counting():
    calls = []

    def model(x):
        calls.append(len(x))
        return x * 3

    return model, calls


def test_a_method_that_does_one_item(tmp_path):
    pytest.importorskip("torch")
    text, new = changed(tmp_path, PREDICTOR, "predictor.predict(path, 1.0)", "self.model(x)", "predict")
    assert "# read it" in new and "with torch.no_grad():" in new
    results = []
    for source in (text, new):
        space = run(source)
        model, calls = counting()
        results.append(space["f"](space["Predictor"](model), list(range(6))))
    assert results[0] == results[1] == ({n: ["even", "odd"][n % 2] for n in range(6)}, None) and calls == [4, 2]


def test_a_decorated_function_whose_names_the_caller_has_too(tmp_path):
    torch = pytest.importorskip("torch")
    text, new = changed(tmp_path, HELPER, "score(model, row * 1.0)", "net(row[None])", "score")
    rows = list(torch.arange(12.0).reshape(6, 2))
    results = []
    for source in (text, new):
        model, calls = counting()
        results.append(run(source)["f"](model, rows))
    assert results[0] == results[1] and calls == [4, 2]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return float(out.sum())", "if row is None:\n        return 0\n    return float(out.sum())"),
        ("@torch.inference_mode()", "@cached"),
        ("out = net(row[None])", "row = row * 2\n    out = net(row[None])"),
        ("def score(net, row):", "def score(net, row, more=0):"),
        ("def score(net, row):", "def score(net, row, *rest):"),
        ("return float(out.sum())", "yield float(out.sum())"),
    ],
)
def test_more_than_a_row_of_statements_is_left(tmp_path, old, new):
    assert textwrap.dedent(HELPER).count(old) == 1
    source = textwrap.dedent(HELPER).replace(old, new)
    with pytest.raises(AnalysisRefused):
        changed(tmp_path, source, "score(model, row * 1.0)", "net(row[None])", "score")

"""A loop of calls for one item runs ahead only where nothing can tell, and gives the same."""

from __future__ import annotations

import ast
import textwrap

import pytest
from optimize_builders import STEP_S, make_context, make_finding, make_measurement, make_module, make_report

from unstall.optimize.batching.loops import NotInLoop, split_loop
from unstall.optimize.batching.writer import with_batches
from unstall.optimize.observed import ObservedModelCall
from unstall.optimize.remedies import batch_calls
from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.places import CallSite
from unstall.records.model import ModelMeasurement


def call_of(path, text, code):
    """The call of this source, as the running program would tell of it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node) == code:
            return CallSite(
                path, node.lineno, "f", (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
            )
    raise AssertionError(code)


def write(tmp_path, source, code, *, stacked=False, size=4):
    text = textwrap.dedent(source).lstrip()
    module = make_module(text)
    return with_batches(split_loop(module, call_of(tmp_path, text, code)), size, stacked=stacked).code


def run(text, name="f"):
    space = {}
    exec(compile(text, "infer.py", "exec"), space)
    return space[name]


PLAIN = """
    import torch

    def f(model, items):
        found = []
        # every item
        for x in items:
            y = model(x.unsqueeze(0))
            found.append(y.sum().item())
        return found
"""


def counting(torch):
    calls = []

    def model(x):
        calls.append(len(x))
        return x * 2

    return model, calls


def test_the_model_is_called_for_several_items(tmp_path):
    torch = pytest.importorskip("torch")
    text = write(tmp_path, PLAIN, "model(x.unsqueeze(0))")
    assert "# every item" in text and 'hasattr(items, "__len__")' in text
    items = [torch.full((3,), float(number)) for number in range(10)]
    model, calls = counting(torch)
    assert run(text)(model, items) == [6.0 * number for number in range(10)]
    assert calls == [4, 4, 2]


def test_a_stream_is_not_read_ahead(tmp_path):
    torch = pytest.importorskip("torch")
    model, calls = counting(torch)
    items = (torch.ones(3) for _ in range(3))
    assert run(write(tmp_path, PLAIN, "model(x.unsqueeze(0))"))(model, items) == [6.0] * 3
    assert calls == [1, 1, 1]


def test_items_of_different_shape_go_apart_and_come_in_order(tmp_path):
    torch = pytest.importorskip("torch")
    model, calls = counting(torch)
    items = [torch.full((1 + number % 2,), float(number)) for number in range(4)]
    assert run(write(tmp_path, PLAIN, "model(x.unsqueeze(0))"))(model, items) == [0.0, 4.0, 4.0, 12.0]
    assert calls == [2, 2]


def test_inputs_without_a_dimension_of_items_are_stacked(tmp_path):
    torch = pytest.importorskip("torch")
    source = """
        def f(model, rows):
            total = 0.0
            for row in rows:
                total += float(model(row)[0])
            return total
    """
    model, calls = counting(torch)
    assert run(write(tmp_path, source, "model(row)", stacked=True))(model, torch.ones(5, 3)) == 10.0
    assert calls == [4, 1]


def test_what_is_made_of_an_item_and_kept_for_it(tmp_path):
    torch = pytest.importorskip("torch")
    source = """
        import numpy as np
        import torch

        def score(model, rows):
            return model(torch.from_numpy(rows))[:, 1]

        def f(model, table, size=1):
            found = {}
            for number, start in enumerate(range(0, len(table), size)):
                if start == 2:
                    continue  # not this one
                rows = table[start : start + size]  # a row
                with torch.no_grad():
                    risk = score(model, rows)
                    found[number] = (rows.shape, float(risk.sum()), risk.requires_grad)
                if number == 5:
                    break
            return found, rows
    """
    text = write(tmp_path, source, "score(model, rows)")
    assert "# a row" in text and "# not this one" in text
    table = __import__("numpy").arange(24.0).reshape(8, 3)
    weight = torch.ones(3, requires_grad=True, dtype=torch.float64)
    before = run(textwrap.dedent(source))(lambda x: x * weight, table)
    after = run(text)(lambda x: x * weight, table)
    assert after[0] == before[0] and (after[1] == before[1]).all()


def test_outputs_in_containers(tmp_path):
    torch = pytest.importorskip("torch")
    source = """
        def f(model, xs):
            out = []
            for x in xs:
                scores, extra = model(x[None], k=x[None])
                out.append((scores, extra["k"]))
            return out
    """
    out = run(write(tmp_path, source, "model(x[None], k=x[None])"))(
        lambda x, k: (x + 1, {"k": k * 2}), [torch.tensor([1.0]), torch.tensor([5.0])]
    )
    assert [(a.tolist(), b.tolist()) for a, b in out] == [([[2.0]], [[2.0]]), ([[6.0]], [[10.0]])]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("if x.ok:\n    y = model(x)", "depends"),
        ("y = model(x) if x else None", "condition"),
        ("y = [model(x) for _ in range(2)]", "loop"),
        ("y = {model(x) for _ in range(2)}", "comprehension"),
        ("state = model(x, state)", "state"),
        ("x = x + last\ny = model(x)\nlast = y", "last"),
        ("print(x)\ny = model(x)", "print"),
        ("seen.append(x)\ny = model(x)", "effect"),
        ("begin = time.time()\ny = model(x)", "time"),
        ("y = model(x)\nitems.remove(x)", "items"),
        ("y = model(x)\nyield y", "handed out"),
        ("y = model(x)\nmodel.train()", "model"),
        ("y = model(x)\nself.count += 1\nz = y", None),
        ("n += 1\ny = model(x)", "n"),
        ("y = model(0)", "loop"),
        ("y = model(**x)", "packed"),
        ("x = next(more)\ny = model(x)", "next"),
        ("queue[0] = x\ny = model(x)", "changed"),
    ],
)
def test_what_may_not_run_ahead(tmp_path, body, why):
    text = f"import time\n\ndef f(self, model, items, seen, queue, more):\n    for x in items:\n{textwrap.indent(body, ' ' * 8)}\n"
    code = next(
        ast.unparse(node) for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node).startswith("model(")
    )  # fmt: skip
    call = call_of(tmp_path, text, code)
    if why is None:
        split_loop(make_module(text), call)
        return
    with pytest.raises(AnalysisRefused, match=why):
        split_loop(make_module(text), call)


@pytest.mark.parametrize(
    ("looped", "sized"),
    [
        ("range(9)", ()),
        ("sorted(a)", ()),
        ("enumerate(a)", ("a",)),
        ("zip(a, self.b)", ("a", "self.b")),
        ("tqdm(enumerate(a.items()))", ()),
        ("a[1:]", ("a[1:]",)),
        ("camera.frames()", None),
        ("read(a)", None),
    ],
)
def test_what_is_known_as_a_whole(tmp_path, looped, sized):
    text = f"for x in {looped}:\n    y = model(x)\n"
    call = call_of(tmp_path, text, "model(x)")
    if sized is None:
        with pytest.raises(AnalysisRefused, match="stream"):
            split_loop(make_module(text), call)
    else:
        assert split_loop(make_module(text), call).sized == sized


COMPREHENSIONS = [
    "out = [model(x.unsqueeze(0)).sum().item() for x in items]\nreturn out",
    "return [model(x.unsqueeze(0)).sum().item() for x in items]",
    "return list(reversed([model(x.unsqueeze(0)).sum().item() for x in reversed(items)]))",
    "out = len([model(x.unsqueeze(0)) for x in items])\nreturn [6.0 * n for n in range(out)]",
    "with torch.no_grad():\n    out = [model(x.unsqueeze(0)).sum().item() for x in items]\nreturn [x for x in out]",
    "out = [(n, model(x.unsqueeze(0))) for n, x in enumerate(items)]\nreturn [y.sum().item() for n, y in out]",
    "out = items\nout = [model(x.unsqueeze(0)).sum().item() for x in out]\nreturn out",
    "total = lambda x: x\nreturn [total(model(x.unsqueeze(0)).sum().item()) for x in items]",
]


@pytest.mark.parametrize("body", COMPREHENSIONS)
def test_a_list_comprehension_is_a_loop(tmp_path, body):
    torch = pytest.importorskip("torch")
    source = f"import torch\n\ndef f(model, items):\n    # all of them\n{textwrap.indent(body, ' ' * 4)}\n"
    text = write(tmp_path, source, "model(x.unsqueeze(0))")
    assert "# all of them" in text
    model, calls = counting(torch)
    assert run(text)(model, [torch.full((3,), float(number)) for number in range(10)]) == [6.0 * n for n in range(10)]
    assert calls == [4, 4, 2]


def test_a_comprehension_of_the_module_itself(tmp_path):
    text = "import torch\n\ndef f(x):\n    return x\n\nfound = torch.stack([model(x) for x in rows])  # all\n"
    written = make_module(write(tmp_path, text, "model(x)")).text
    assert "results = []\n" in written and "    results.append(output)\n" in written
    assert "found = torch.stack(results)  # all\n" in written


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("y = [model(x) for x in items if x]", "conditions"),
        ("y = [model(x) for row in items for x in row]", "loops of its own"),
        ("y = sum(model(x) for x in items)", "comprehension"),
        ("y = more() + [model(x) for x in items]", "not the first"),
        ("y = max(more(), [model(x) for x in items])", "not the first"),
        ("y = 1; z = [model(x) for x in items]", "not the first"),
        ("if items: y = [model(x) for x in items]", "not the first"),
        ("x = 3\ny = [model(x) for x in items]", "x is a variable"),
        ("y = [model(x) for x in items]\nprint(x)", "x is a variable"),
        ("y = [model(x) for x in items]\nz = lambda: x", "x is a variable"),
        ("y = [model(x) for x in items]\nz = lambda x: x", None),
        ("y = [model(x) for x in items]\nz = [x for x in y]", None),
        ("y = [model(x) for x in stream()]", "stream"),
        ("y = [model(x) for x in items.take()]", "stream"),
    ],
)
def test_a_comprehension_that_is_no_loop_of_its_own_is_left(tmp_path, body, why):
    text = f"def f(model, items):\n{textwrap.indent(body, ' ' * 4)}\n"
    call = call_of(tmp_path, text, "model(x)")
    if why is None:
        split_loop(make_module(text), call)
        return
    with pytest.raises(AnalysisRefused, match=why):
        split_loop(make_module(text), call)


def test_a_function_without_a_loop_sends_to_its_caller(tmp_path):
    text = "def score(model, x):\n    return model(x)[0]\n"
    with pytest.raises(NotInLoop):
        split_loop(make_module(text), call_of(tmp_path, text, "model(x)"))


def test_the_loop_around_the_function_that_calls_the_model(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "infer.py"
    text = textwrap.dedent("""
        def score(model, rows):
            return model(rows)[:, 0]

        def f(model, table):
            total = 0.0
            for start in range(0, len(table)):
                total += score(model, table[start : start + 1]).item()
            return total
    """)
    path.write_text(text)
    inner = call_of(path, text, "model(rows)")
    outer = call_of(path, text, "score(model, table[start:start + 1])")
    observed = ObservedModelCall(call=inner, callers=(outer,), shapes=((1, 3),), bytes=12)
    sources, call, called = batch_calls.in_batches(make_context(tmp_path), observed)
    assert (call, called) == (outer, inner.function)
    model, calls = counting(torch)
    assert run(sources.bytes_of(path).decode())(model, torch.ones(300, 3)) == 600.0
    assert calls == [256, 44]


def test_the_methods_of_the_object_are_looked_into(tmp_path):
    text = textwrap.dedent("""
        class Runner:
            def log(self, y):
                self.{} = y

            def f(self, items):
                for x in items:
                    y = self.model(x)
                    self.log(y)
    """)
    for name, safe in (("last", True), ("model", False)):
        source = text.format(name)
        call = call_of(tmp_path, source, "self.model(x)")
        if safe:
            split_loop(make_module(source), call)
        else:
            with pytest.raises(AnalysisRefused, match=r"self\.model"):
                split_loop(make_module(source), call)


@pytest.mark.parametrize(
    ("shapes", "size", "count"),
    [
        ([[1, 40]], 160, 256),
        ([[40]], 160, 256),
        ([[32, 40]], 5120, 1),
        ([], 0, 1),
        ([[1, 3, 1024, 1024]], 12 << 20, 1),
        ([[1, 3, 512, 512]], 3 << 20, 5),
    ],
)
def test_how_many_items_depends_on_their_size(shapes, size, count):
    assert batch_calls.size_of(ObservedModelCall(shapes=tuple(map(tuple, shapes)), bytes=size)) == count


def test_what_a_call_costs_beyond_its_arithmetic():
    def context(flops, forward, pattern="compute-bound"):
        measurement = make_measurement(
            model=ModelMeasurement(flops=flops, peak_flops=1e11), phases={"forward": forward / STEP_S},
        )  # fmt: skip
        return make_context(report=make_report(findings=[make_finding(pattern)]), measurement=measurement)

    assert batch_calls.removed(context(1e5, 1e-3)) == pytest.approx(0.9)
    assert batch_calls.removed(context(1e7, 1e-3)) == pytest.approx(2 / 3)
    assert batch_calls.removed(context(1e9, 1e-3)) == 0
    assert batch_calls.removed(context(None, 1e-3)) == pytest.approx(0.6)
    assert batch_calls.removed(context(None, 1e-3, "overhead-bound")) == pytest.approx(0.9)

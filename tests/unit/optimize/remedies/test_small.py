"""The small remedies' rules and what they write."""

from __future__ import annotations

import pytest

from unstall.optimize.computing import impurity
from unstall.optimize.remedies.loader_workers import counts
from unstall.optimize.remedies.memoize import with_cache as with_memory
from unstall.optimize.remedies.no_grad import with_gradients_off, with_no_grad
from unstall.optimize.remedies.single_precision import in_single
from unstall.optimize.remedies.threads import predict, with_line_after_imports
from unstall.optimize.sources import Sources
from unstall.records.measurements import Site


@pytest.mark.parametrize(("now", "cores"), [(0, 2), (2, 2), (8, 4), (1, 1), (16, 64)])
def test_more_and_fewer_workers_are_options_but_never_the_present_count(now, cores):
    found = counts(now, cores)
    assert now not in found and min(found) >= 0 and found == sorted(set(found))
    assert any(count > now for count in found)
    assert not now or any(count < now for count in found)


def test_threads_promise_no_more_than_the_models_share():
    for model in (0.0, 0.3, 1.0):
        predicted, _ = predict(model, 1, 8, crowded=False)
        assert 1 <= predicted <= 1 / (1 - model * 0.999) + 1e-9


def test_a_statement_after_the_imports(tmp_path):
    path = tmp_path / "train.py"
    path.write_text('"""Doc."""\n\nimport torch\nfrom x import y\n\nz = 1\n')
    changed = with_line_after_imports(Sources(), path, "torch.set_num_threads(2)")
    assert changed.bytes_of(path).decode().splitlines()[3:6] == ["from x import y", "", "torch.set_num_threads(2)"]
    path.write_text("import numpy\n")
    assert with_line_after_imports(Sources(), path, "torch.set_num_threads(2)") is None


def test_no_grad_only_around_a_loop_that_never_goes_backward(tmp_path):
    path = tmp_path / "train.py"
    source = "import torch\n\n\ndef validate(model, loader):\n    for x in loader:\n        {}\n"
    path.write_text(source.format("model(x)"))
    assert b"@torch.no_grad()\ndef validate" in with_no_grad(Sources(), path, "validate", 6).bytes_of(path)
    path.write_text(source.format("model(x).backward()"))
    assert with_no_grad(Sources(), path, "validate", 6) is None


def test_a_script_that_never_asks_for_gradients(tmp_path):
    path = tmp_path / "infer.py"
    path.write_text("import torch\n\nfor x in y:\n    model(x)\n")
    changed = with_gradients_off(Sources(), path).bytes_of(path).decode()
    assert changed.startswith("import torch\n\ntorch.set_grad_enabled(False)\n\nfor x")
    path.write_text("import torch\n\nfor x in y:\n    model(x).sum().backward()\n")
    assert with_gradients_off(Sources(), path) is None


def test_a_function_without_a_loop_where_nothing_trains(tmp_path):
    path = tmp_path / "infer.py"
    path.write_text("import torch\n\n\ndef score(model, x):\n    return model(x)\n")
    assert with_no_grad(Sources(), path, "score", 5) is None
    assert b"@torch.no_grad()\ndef score" in with_no_grad(Sources(), path, "score", 5, loop=False).bytes_of(path)


@pytest.mark.parametrize(
    ("source", "pure"),
    [
        ("def f(word):\n    parts = list(word)\n    parts[0] = 'x'\n    return [ord(c) for c in parts]\n", True),
        ("def f(word):\n    word.append(1)\n    return word\n", False),
        ("def f(word):\n    return open(word).read()\n", False),
        ("def f(image):\n    return image.width\n", False),
        ("def f(word):\n    return word.lower()\n", True),
        ("import random\ndef f(word):\n    return random.random()\n", False),
        ("def f(word):\n    print(word)\n    return 1\n", False),
        ("def f():\n    return sum(range(9))\n", True),
        ("def f(word):\n    len(word)\n", False),
        ("def f():\n    return nn.Linear(2, 3)\n", False),
        ("def f(word):\n    if not word:\n        raise ValueError(word)\n    return word\n", True),
        ("def f(word):\n    return Path(word).name\n", True),
        ("rate = 1\ndef f(word):\n    return word * rate\nrate = 2\n", False),
        ("class A:\n    def set(self):\n        self.k = 1\n    def f(self, w):\n        return self.k + w\n", False),
        ("class A(nn.Module):\n    def f(self, w):\n        return w + 1\n", False),
    ],
)
def test_only_what_computes_from_its_arguments_may_be_remembered(source, pure):
    line = next(number for number, one in enumerate(source.splitlines(), 1) if "def f" in one) + 1
    assert (impurity(source, line) is None) is pure


def test_a_function_that_remembers(tmp_path):
    path = tmp_path / "words.py"
    path.write_text("def f(word):\n    return len(word)\n")
    changed = with_memory(Sources(), path, "f", 2).bytes_of(path).decode()
    assert "import functools" in changed and "@functools.lru_cache(maxsize=65536, typed=True)\ndef f(word):" in changed


TABLE = """import random

calls = []


def load(lines, start):
    return [float(cell) for cell in lines[start].split(",")]


def main():
    lines = ["1,2", "3,4"]
    for epoch in range(3):
        for start in range(len(lines)):
            calls.append(load(lines, start))
"""


@pytest.mark.parametrize(
    ("old", "new", "by_list"),
    [
        ("", "", True),
        ("    for epoch", "    random.shuffle(lines)\n    for epoch", False),
        ("    for epoch", "    lines.append('5,6')\n    for epoch", False),
        ("    for epoch", "    lines[0] = '5,6'\n    for epoch", False),
        ("    for epoch", "    other = lines\n    for epoch", False),
        ("        for start", "        lines = list(lines)\n        for start", False),
        ("load(lines, start))", "load(lines, start=start))", False),
        ("load(lines, start))", "load(list(lines), start))", False),
    ],
)
def test_a_list_that_stays_as_it_is_is_known_by_which_one_it_is(tmp_path, old, new, by_list):
    path = tmp_path / "table.py"
    path.write_text(TABLE.replace(old, new))
    line = path.read_text().splitlines().index("def load(lines, start):") + 1
    changed = with_memory(Sources(), path, "load", line).bytes_of(path).decode()
    assert ("@functools.partial(_Remembered, lists=(0,))\ndef load(" in changed) is by_list
    assert ("@functools.lru_cache" in changed) is not by_list
    if by_list:
        spaces: list[dict] = [{}, {}]
        for text, space in zip((TABLE, changed), spaces):
            exec(compile(text, "table.py", "exec"), space)
            space["main"]()
        assert spaces[0]["calls"] == spaces[1]["calls"]
        assert spaces[1]["calls"][0] is spaces[1]["calls"][2], "the first epoch's answer"
        other = ["9,9"]
        assert spaces[1]["load"](other, 0) == [9.0, 9.0] and spaces[1]["load"].__name__ == "load"
        with pytest.raises(TypeError, match="unhashable"):
            spaces[1]["load"](other, [0])  # a list at another place may change


DOUBLE = """import torch


def train(model, loader):
    model = model.double()
    for x, y in loader:
        model(x)
"""


def test_a_double_model_becomes_single_with_its_batches(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(DOUBLE)
    text = in_single(Sources(), path, Site("~forward", str(path), "train", 7)).bytes_of(path).decode()
    assert "model = model.float()" in text and "double" not in text
    batch = "        x, y = (value.float() if value.is_floating_point() else value for value in (x, y))\n"
    assert f"    for x, y in loader:\n{batch}        model(x)\n" in text

"""What comes out the same in every turn is computed once; what may not is left where it is."""

from __future__ import annotations

import textwrap

import pytest

from unstall.optimize.remedies.hoist import NotSteady, steady_statement, with_hoisted
from unstall.optimize.sources import Sources

SOURCE = """
    import math
    import random
    import torch

    WEIGHTS = [1.0, 2.0]

    def table(n):
        return [math.sqrt(k) for k in range(n)]

    def settings():
        return [k * 2 for k in range(9)]

    def noisy():
        return random.random()

    def counting(seen):
        seen.append(1)
        return len(seen)

    def f(loader, model, n, seen):
        # the loop
        for x in loader:
            {}
            y = model(x)
            {}
"""


def program(statement, after="use(y)"):
    text = textwrap.dedent(SOURCE).lstrip().replace("{}", statement, 1).replace("{}", after, 1)
    line = next(number for number, one in enumerate(text.splitlines(), 1) if one.strip() == statement)
    return text, line


@pytest.mark.parametrize(
    "statement",
    [
        "mask = torch.ones(n, n).triu(1).bool()",
        "roots = table(100)",
        "roots = sorted(settings())",
        "scale = torch.tensor(WEIGHTS, dtype=torch.float32).mean()",
        "steps = torch.arange(n)[None].expand(3, n)",
    ],
)
def test_what_is_the_same_in_every_turn(tmp_path, statement):
    text, line = program(statement)
    found, loop = steady_statement(text, line)
    path = tmp_path / "train.py"
    path.write_text(text)
    changed = with_hoisted(Sources(), path, found.lineno, loop.lineno).bytes_of(path).decode()
    assert f"    # the loop\n    {statement}\n    for x in loader:\n        y = model(x)\n" in changed


@pytest.mark.parametrize(
    ("statement", "after", "why"),
    [
        ("mask = torch.ones(len(x))", "use(y)", "x may change"),
        ("mask = torch.rand(n)", "use(y)", "rand"),
        ("value = noisy()", "use(y)", "random"),
        ("value = counting(seen)", "use(y)", "counting"),
        ("out = model(n)", "use(y)", "model"),
        ("mask = torch.ones(n)", "mask += y", "set elsewhere"),
        ("mask = torch.ones(n)", "mask.add_(y)", "changed"),
        ("mask = torch.ones(n)", "mask[0] = y", "changed"),
        ("mask = torch.ones(n)", "n = n + 1", "n may change"),
        ("mask = torch.empty(n)", "use(y)", "only compute"),
        ("data = torch.load(n)", "use(y)", "only compute"),
        ("total = seen.sum()", "seen.append(y)", "seen may change"),
        ("a = 3", "use(y)", "calls nothing"),
        ("a, b = table(2)", "use(y)", "more than a name"),
        ("text = open(n).read()", "use(y)", "not known"),
        ("roots = table(3)", "torch.mul(y, y, out=roots)", "changed"),
    ],
)
def test_what_may_differ_or_is_changed_stays(statement, after, why):
    with pytest.raises(NotSteady, match=why):
        steady_statement(*program(statement, after))


def test_only_statements_of_the_loop_itself():
    text, line = program("mask = torch.ones(n)")
    with pytest.raises(NotSteady, match="plain assignment"):
        steady_statement(text.replace("mask =", "if n: mask ="), line)

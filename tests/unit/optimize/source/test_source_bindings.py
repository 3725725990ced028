"""What a function reads from around it: only what stays as it is may go into an answer that is remembered."""

import textwrap

import libcst as cst
import pytest
from optimize_builders import make_module

from unstall.optimize.source.bindings import changing_name, only_names


def changed(source):
    module = make_module(textwrap.dedent(source))
    return changing_name(module, next(one for one in module.all(cst.FunctionDef) if one.name.value == "f"))


@pytest.mark.parametrize(
    "source",
    [
        """
        import math
        TABLE = {"a": 1}
        def f(word):
            return TABLE[word] * math.pi
        """,
        """
        rate = 0.5
        def f(x):
            return rate * x
        def other():
            rate = 2
            rate += 1
            return rate
        """,
        """
        def f(x):
            total = 0
            for part in x:
                total += part
            return helper(total)
        def helper(x):
            return x
        """,
        """
        def main():
            sizes = [1, 2]
            def f(x):
                return sizes[x]
            seen = []
            seen.append(f(1))
        """,
        """
        kept = [1]
        def f(x):
            return kept[x]
        def other(kept):
            kept.append(1)
        """,
    ],
)
def test_what_stays_as_it_is(source):
    assert changed(source) is None


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("epoch = 0\ndef f(x):\n    return x * epoch\nwhile epoch < 3:\n    epoch += 1\n", "epoch"),
        ("for epoch in range(3):\n    print(1)\ndef f(x):\n    return x * epoch\n", "epoch"),
        ("rate = 1\ndef f(x):\n    return x * rate\nrate = 2\n", "rate"),
        ("rate = 1\ndef f(x):\n    return x * rate\ndef decay():\n    global rate\n    rate = rate / 2\n", "rate"),
        ("table = {}\ndef f(x):\n    return table[x]\ndef learn(x):\n    table[x] = 1\n", "table"),
        ("table = {}\ndef f(x):\n    return table[x]\ndef learn(x):\n    table.update(x)\n", "table"),
        ("config = make()\ndef f(x):\n    return config.rate\ndef main():\n    config.rate = 3\n", "config"),
        ("net = Net()\ndef f(x):\n    return net(x)\n", "net"),
        ("def main():\n    for rate in (1, 2):\n        def f(x):\n            return rate * x\n", "rate"),
        (
            "def main():\n    n = 1\n    def f(x):\n        return n\n    def g():\n        nonlocal n\n        n = 2\n",
            "n",
        ),
    ],
)
def test_what_may_change(source, name):
    assert changed(source) == name


@pytest.mark.parametrize(
    ("target", "names"),
    [("x", ["x"]), ("(b, a)", ["b", "a"]), ("[a, b]", ["a", "b"]), ("a.b", []), ("(a, b[0])", []), ("(i, (x, y))", [])],
)
def test_a_target_that_is_names_alone(target, names):
    assert only_names(cst.parse_expression(target)) == names

"""What may be remembered: what only computes from its arguments, by whatever names the file imports."""

from __future__ import annotations

import libcst as cst
import pytest
from optimize_builders import make_module

from unstall.optimize.source.purity import impurity


@pytest.mark.parametrize(
    ("source", "pure"),
    [
        ("def f(word):\n    parts = list(word)\n    parts[0] = 'x'\n    return [ord(c) for c in parts]\n", True),
        ("def f(word):\n    word.append(1)\n    return word\n", False),
        ("def f(word):\n    return open(word).read()\n", False),
        ("def f(image):\n    return image.width\n", False),
        ("def f(word):\n    return word.lower()\n", True),
        ("import random\ndef f(word):\n    return random.random()\n", False),
        ("import numpy as xp\ndef f(word):\n    return xp.random.normal(word)\n", False),
        ("import numpy as xp\ndef f(word):\n    return xp.sqrt(len(word))\n", True),
        ("from time import time as now\ndef f(word):\n    return now() - word\n", False),
        ("from numpy.random import beta\ndef f(word):\n    return beta(word, 1)\n", False),
        ("table = {}\ndef f(word):\n    table[word] = 1\n    return 1\n", False),
        ("def f(word):\n    def g(c):\n        return c + 1\n    return g(word)\n", True),
        ("def f(word, g):\n    return g(word)\n", False),
        ("def f(word):\n    print(word)\n    return 1\n", False),
        ("def f():\n    return sum(range(9))\n", True),
        ("def f(word):\n    len(word)\n", False),
        ("def f():\n    return nn.Linear(2, 3)\n", False),
        ("def f(word):\n    if not word:\n        raise ValueError(word)\n    return word\n", True),
        ("def f(word):\n    return Path(word).name\n", True),
        ("rate = 1\ndef f(word):\n    return word * rate\nrate = 2\n", False),
        ("class A:\n    def set(self):\n        self.k = 1\n    def f(self, w):\n        return self.k + w\n", False),
        ("class A:\n    def f(self, w):\n        return w + 1\n", True),
        (
            "class A:\n    def __eq__(self, other):\n        return True\n    def f(self, w):\n        return w + 1\n",
            False,
        ),
        ("class A(nn.Module):\n    def f(self, w):\n        return w + 1\n", False),
    ],
)
def test_only_what_computes_from_its_arguments_may_be_remembered(source, pure):
    module = make_module(source)
    function = next(one for one in module.all(cst.FunctionDef) if one.name.value == "f")
    assert (impurity(module, function) is None) is pure


def test_the_reason_says_what_is_changed():
    module = make_module("class Model:\n    def f(self, x):\n        self.sizes.append(len(x))\n        return x + 1\n")
    (function,) = module.all(cst.FunctionDef)
    assert impurity(module, function) == "line 3 calls self.sizes.append, which changes self.sizes"

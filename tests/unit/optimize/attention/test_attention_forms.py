"""The ways in which attention's operations are written."""

import pytest
from optimize_builders import make_module

from unstall.optimize.attention import forms


def parsed(source):
    module = make_module(f"import math\nimport torch as th\n{source}\n")
    return module, module.tree.body[2].body[0].value


@pytest.mark.parametrize("product", ["a @ b", "th.matmul(a, b)", "th.bmm(a, b)", "a.matmul(b)"])
def test_a_product_of_matrices(product):
    module, node = parsed(product)
    assert [module.code(one) for one in forms.weighted_mean(module, node)] == ["a", "b"]


@pytest.mark.parametrize("keys", ["k.transpose(-2, -1)", "k.mT", "k.swapaxes(2, 3)", "k.permute(0,1,3,2)"])
def test_a_product_with_a_transposed_matrix(keys):
    module, node = parsed(f"q @ {keys}")
    assert [module.code(one) for one in forms.products(module, node)] == ["q", "k"]


@pytest.mark.parametrize("keys", ["k.transpose(0, 1)", "k.permute(0, 2, 1, 3)", "k.T", "k"])
def test_other_dimensions_are_not_the_last_two(keys):
    assert forms.products(*parsed(f"q @ {keys}")) is None


@pytest.mark.parametrize(
    "source, of",
    [
        ("s.softmax(-1)", "s"),
        ("th.softmax(s, dim=-1)", "s"),
        ("s.softmax(0)", None),
        ("f(s)", None),
    ],
)
def test_a_softmax_over_the_keys(source, of):
    module, node = parsed(source)
    scores = forms.softmaxed(module, node)
    assert (scores and module.code(scores)) == of


@pytest.mark.parametrize(
    "value, negative",
    [
        ("float('-inf')", True),
        ('-float("inf")', True),
        ("-1e9", True),
        ("-math.inf", True),
        ("th.finfo(x.dtype).min", True),
        ("-1.0", False),
        ("x", False),
    ],
)
def test_what_a_mask_fills_in(value, negative):
    assert (forms.masked(*parsed(f"s.masked_fill(m, {value})")) is not None) is negative


@pytest.mark.parametrize("mask, counting", [("~m", "m"), ("m == 0", "(m != 0)"), ("m", "~m"), ("a | b", "~(a | b)")])
def test_the_mask_of_what_counts(mask, counting):
    assert forms.masked(*parsed(f"s.masked_fill({mask}, -1e9)"))[2] == counting
    assert forms.masked(*parsed(f"th.where({mask}, s, -1e9)"))[2] in (mask, f"({mask})")

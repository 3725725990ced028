"""The ways in which attention's operations are written."""

import ast

import pytest

from unstall.optimize.attention import forms

FORMS = forms.Forms()


def parsed(source):
    return ast.parse(source, mode="eval").body


@pytest.mark.parametrize("source", ["a @ b", "torch.matmul(a, b)", "torch.bmm(a, b)", "a.matmul(b)"])
def test_a_product_of_matrices(source):
    assert [ast.unparse(one) for one in FORMS.matmul(parsed(source))] == ["a", "b"]


@pytest.mark.parametrize("source", ["k.transpose(-2, -1)", "k.mT", "k.swapaxes(2, 3)", "k.permute(0, 1, 3, 2)"])
def test_a_transposed_matrix(source):
    assert ast.unparse(forms.transposed(parsed(source))) == "k"


@pytest.mark.parametrize("source", ["k.transpose(0, 1)", "k.permute(0, 2, 1, 3)", "k.T", "k"])
def test_other_dimensions_are_not_the_last_two(source):
    assert forms.transposed(parsed(source)) is None


@pytest.mark.parametrize(
    "source, found", [("s.softmax(-1)", "s"), ("torch.softmax(s, dim=-1)", "s"), ("s.softmax(0)", None), ("f(s)", None)]
)
def test_a_softmax_over_the_keys(source, found):
    taken = FORMS.softmaxed(parsed(source))
    assert (taken and ast.unparse(taken)) == found


@pytest.mark.parametrize(
    "source, negative",
    [
        ("float('-inf')", True),
        ("-1e9", True),
        ("-math.inf", True),
        ("torch.finfo(x.dtype).min", True),
        ("-1.0", False),
        ("x", False),
    ],
)
def test_what_a_mask_fills_in(source, negative):
    assert FORMS.is_very_negative(parsed(source)) == negative


@pytest.mark.parametrize("source, kept", [("~m", "m"), ("m == 0", "(m != 0)"), ("m", "~m"), ("a | b", "~(a | b)")])
def test_the_mask_of_what_counts(source, kept):
    assert forms.negated(parsed(source)) == kept

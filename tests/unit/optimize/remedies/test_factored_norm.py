"""Norms of products become products of norms that are the same but for rounding; what is no such norm stays."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from optimize_builders import make_context, make_module, make_report

from unstall.optimize.remedies.factored_norm import REMEDY
from unstall.optimize.rewrites.factored_norm import is_of_examples, product_norms
from unstall.optimize.runtime.factored_norm import _FactoredNorm
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.product_uses import rewritten
from unstall.records.report import Hotspot

SOURCE = """import torch


def norms(given, gradient):
    each = torch.einsum("ni,nj->nij", gradient, given)
    return each.flatten(1).norm(dim=1)
"""


def changed(source):
    module = make_module(source)
    functions = [node for node in module.tree.body if type(node).__name__ == "FunctionDef"]
    return rewritten(module, list(product_norms(module, functions[-1])), "factored_norm").code


def run(code, *arguments):
    space = {}
    exec(compile(code, "program.py", "exec"), space)
    return space["norms"](*arguments)


def test_the_norm_of_a_named_product_is_that_of_its_factors():
    code = changed(SOURCE)
    assert 'return _FactoredNorm.norms("ni,nj->nij", gradient, given)' in code and "each =" not in code
    given, gradient = torch.randn(8, 5), torch.randn(8, 7)
    torch.testing.assert_close(run(code, given, gradient), run(SOURCE, given, gradient))


OUTER = 'torch.einsum("ni,nj->nij", a, b)'
NORMS, SQUARES = (f'return _FactoredNorm.{what}("ni,nj->nij", a, b)' for what in ("norms", "squares"))


@pytest.mark.parametrize(
    ("line", "written"),
    [
        (f"return {OUTER}.flatten(1).norm(2, dim=-1)", NORMS),
        (f"return {OUTER}.reshape(len(a), -1).norm(p=2, dim=1)", NORMS),
        (f"return {OUTER}.norm(dim=(1, 2))", NORMS),
        (f"return torch.norm({OUTER}, 2, (-1, -2))", NORMS),
        (f"return torch.linalg.vector_norm({OUTER}, dim=[2, 1])", NORMS),
        (f"return torch.linalg.norm({OUTER}, dim=(1, 2))", NORMS),
        (f"return ({OUTER} ** 2).sum((1, 2))", SQUARES),
        (f"return {OUTER}.pow(2).sum(dim=(1, 2))", SQUARES),
        (f"p = {OUTER}\n    return torch.sum(p.flatten(1).square(), dim=1)", SQUARES),
        (f"return torch.linalg.norm({OUTER}, 2, dim=(1, 2))", ""),  # the largest singular value
        (f"return {OUTER}.norm(1, dim=(1, 2))", ""),
        (f"return {OUTER}.norm(dim=1)", ""),
        (f"return {OUTER}.norm(dim=(0, 1, 2))", ""),
        (f"return {OUTER}.flatten(1).norm(dim=1, keepdim=True)", ""),
        (f"return {OUTER}.flatten(1).norm()", ""),
        (f"return {OUTER}.sum((1, 2))", ""),
        (f"p = {OUTER}\n    return p.flatten(1).norm(dim=1) + p.sum()", ""),
        ('return torch.einsum("ni,ij->nj", a, b).norm(dim=1)', ""),
    ],
)
def test_which_norms_are_taken_from_factors(line, written):
    code = changed(f"import torch\n\n\ndef norms(a, b):\n    {line}\n")
    assert (written in code) if written else ("_FactoredNorm." not in code)
    if written:
        a, b = torch.randn(4, 3), torch.randn(4, 6)
        plain = f"import torch\n\n\ndef norms(a, b):\n    {line}\n"
        torch.testing.assert_close(run(code, a, b), run(plain, a, b))


@pytest.mark.parametrize(
    ("equation", "is_it"),
    [
        ("ni,nj->nij", True),
        ("ni,nj->nji", True),
        ("nti,ntj->nij", True),
        ("n...i,n...j->nij", True),
        ("ni,njk->nijk", True),
        ("ni,nj->inj", False),  # the examples are not first
        ("ni,nj->nj", False),  # a sum over one side's own axis
        ("ni,ni->n", False),
        ("ni,n->ni", False),
        ("nii,nj->nij", False),
        ("n...i,nj->nij", False),
        ("n...i,n...j->n...ij", False),
        ("ni,nj,nk->nijk", False),
        ("ni,nj", False),
        ("", False),
    ],
)
def test_which_einsums_have_a_part_for_each_example(equation, is_it):
    assert is_of_examples(equation) is is_it


@settings(max_examples=60)
@given(
    equation=st.sampled_from(["ni,nj->nij", "nti,ntj->nji", "ni,njk->nkij", "n...i,n...j->nij", "tni,ntj->nij"]),
    sizes=st.tuples(*[st.integers(1, 6)] * 6), dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
    learns=st.booleans(),
)  # fmt: skip
def test_any_sizes_give_the_same(equation, sizes, dtype, learns):
    assert is_of_examples(equation)
    of = dict(zip("ntijk.", sizes))
    left, right = (
        torch.randn([of[axis] for axis in side.replace("...", ".")]).to(dtype).requires_grad_(learns)
        for side in equation.partition("->")[0].split(",")
    )
    whole = torch.einsum(equation, left, right).flatten(1)
    torch.testing.assert_close(_FactoredNorm.norms(equation, left, right), whole.norm(dim=1), rtol=1e-4, atol=1e-4)
    squares = _FactoredNorm.squares(equation, left, right)
    torch.testing.assert_close(squares, whole.square().sum(1), rtol=1e-4, atol=1e-4)
    assert squares.requires_grad == learns


def test_tensors_that_an_einsum_spreads_are_left_to_it():
    left, right = torch.randn(4, 3), torch.randn(1, 5)  # one for all examples
    whole = torch.einsum("ni,nj->nij", left, right).flatten(1).norm(dim=1)
    torch.testing.assert_close(_FactoredNorm.norms("ni,nj->nij", left, right), whole)


def context(tmp_path, share):
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    spots = [Hotspot(function="norms", file=str(path), line=line, share=share / 2, phase="backward") for line in (5, 6)]
    return make_context(tmp_path, script=path, report=make_report(hotspots=spots, phases={"backward": share, "other": 1 - share}))  # fmt: skip


def test_it_is_proposed_by_the_share_of_both_lines(tmp_path):
    (proposal,) = REMEDY.propose(context(tmp_path, 0.5))
    assert proposal.title == "norms takes norms of products from their factors (train.py:5)"
    assert proposal.predicted == pytest.approx(1 / (1 - 0.5 * 0.9)) and REMEDY.never_exact
    with pytest.raises(NotApplicable, match="no hot line of your own takes norms"):
        REMEDY.propose(context(tmp_path, 0.01))

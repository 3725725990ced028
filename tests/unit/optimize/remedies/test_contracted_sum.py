"""Sums of products become contractions that give the same but for rounding; what is no such sum stays."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from optimize_builders import make_context, make_module, make_report

from unstall.optimize.remedies.contracted_sum import REMEDY
from unstall.optimize.rewrites.contracted_sum import contractions, merged
from unstall.optimize.runtime.contracted import _Contracted
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.product_uses import rewritten
from unstall.records.report import Hotspot

SAMPLES = """import torch
import torch.nn.functional as F


def gradients(words, back, number):
    one_hot = F.one_hot(words, num_classes=number)
    outer = torch.einsum("n...i,n...j->n...ij", one_hot, back)
    return torch.einsum("n...ij->nij", outer)
"""


def changed(source):
    module = make_module(source)
    functions = [node for node in module.tree.body if type(node).__name__ == "FunctionDef"]
    part = functions[-1] if functions else module.tree
    return rewritten(module, list(contractions(module, part)), "contracted").code


def run(code, name, *arguments):
    space = {}
    exec(compile(code, "program.py", "exec"), space)
    return space[name](*arguments)


@pytest.mark.parametrize("shape", [(4, 5), (4,), (2, 3, 5)])
def test_an_einsum_that_sums_another_is_one(shape):
    words, back = torch.randint(7, shape), torch.randn(*shape, 3)
    code = changed(SAMPLES)
    assert '_Contracted.einsum("n...i,n...j->nij", one_hot, back)' in code and "outer" not in code
    torch.testing.assert_close(run(code, "gradients", words, back, 7), run(SAMPLES, "gradients", words, back, 7))


@pytest.mark.parametrize(
    ("product", "kept", "equation"),
    [
        ("n...i,n...j->n...ij", "n...ij->nij", "n...i,n...j->nij"),
        ("ab,bc -> abc", "xyz->zx", "ab,bc->ca"),
        ("ab,bc->abc", "xyz->zxy", None),  # it sums nothing
        ("ab,bc->abc", "xxz->x", None),  # a diagonal
        ("ab,bc->abc", "...z->...", None),
        ("ab,bc", "xyz->x", None),
        ("ab,bc,cd->abd", "xyz->x", None),
        ("ab,bc->abc", "xy->x", None),
    ],
)
def test_two_equations_are_one_where_the_second_only_sums(product, kept, equation):
    assert merged(product, kept) == equation


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4), spread=st.tuples(st.integers(0, 15), st.integers(0, 15)),
    fewer=st.integers(0, 2), dims=st.sets(st.integers(-4, 3), min_size=1, max_size=2), keepdim=st.booleans(),
    dtypes=st.tuples(*[st.sampled_from([torch.float32, torch.float64, torch.int64, torch.bool])] * 2),
)  # fmt: skip
def test_any_axes_and_dtypes_give_the_same(sizes, spread, fewer, dims, keepdim, dtypes):
    sides = []
    for number, dtype, bits in zip((len(sizes), max(len(sizes) - fewer, 0)), dtypes, spread):
        shape = [1 if bits >> at & 1 else size for at, size in enumerate(sizes)][len(sizes) - number :]
        sides.append((torch.randn(shape) * 3).to(dtype))
    dims = tuple({dim % len(sizes) for dim in dims})
    if max(side.dim() for side in sides) < len(sizes):
        return
    for dim in (dims, dims[0]):
        wanted = (sides[0] * sides[1]).sum(dim, keepdim=keepdim)
        got = _Contracted.sum(*sides, dim, keepdim=keepdim)
        torch.testing.assert_close(got, wanted, check_dtype=True)


def test_the_precision_is_that_of_the_product():
    left, right = torch.randn(8, 16), torch.randn(16, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = _Contracted.einsum("ij,jk->ik", left, right)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, left @ right)
    whole = _Contracted.einsum("ij,jk->ik", torch.full((2, 3), 2**40), torch.ones(3, 2, dtype=torch.int64))
    assert whole.tolist() == [[3 * 2**40] * 2] * 2


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("return (a[:, None] * b[None]).sum(-1)", "_Contracted.sum(a[:, None], b[None], -1)"),
        ("return (a.unsqueeze(1) * b).sum(dim=2, keepdim=True)", "_Contracted.sum(a.unsqueeze(1), b, dim=2, keepdim=True)"),
        ("return torch.sum(a[:, None] * b, dim=(1, 2))", "_Contracted.sum(a[:, None], b, dim=(1, 2))"),
        ("p = a[:, None] * b[None]\n    return p.sum(2)", "_Contracted.sum(a[:, None], b[None], 2)"),
        ("return (a[:, None] * b[None]).sum()", ""),
        ("return (a[:, None] - b[None]).sum(-1)", ""),
        ("return (a * b).sum(-1)", ""),  # as much is stored, and read, as there is
        ("return (a[:, None] * b[None]).sum(-1, dtype=torch.float64)", ""),
        ("p = a[:, None] * b[None]\n    print(p)\n    return p.sum(2)", ""),
        ("p = a[:, None] * b[None]\n    return p.sum(2, keepdim=True) + p", ""),
        ("# of all pairs\n    p = a[:, None] * b[None]\n    return p.sum(2)", ""),  # the comment would be lost
    ],
)  # fmt: skip
def test_a_product_that_is_spread_and_summed_is_contracted(line, written):
    source = f"import torch\n\n\ndef pairs(a, b):\n    {line}\n"
    code = changed(source)
    assert (written in code) if written else ("_Contracted.sum(" not in code)
    a, b = torch.randn(3, 5), torch.randn(3, 5)
    torch.testing.assert_close(run(code, "pairs", a, b), run(source, "pairs", a, b))


def context(tmp_path, share):
    path = tmp_path / "train.py"
    path.write_text(SAMPLES)
    spots = [
        Hotspot(function="gradients", file=str(path), line=line, share=share / 2, phase="backward") for line in (7, 8)
    ]
    return make_context(tmp_path, script=path, report=make_report(hotspots=spots, phases={"backward": share, "other": 1 - share}))  # fmt: skip


def test_it_is_proposed_by_the_share_of_both_lines(tmp_path):
    (proposal,) = REMEDY.propose(context(tmp_path, 0.5))
    assert proposal.title == "gradients sums its products as it makes them (train.py:7)"
    assert proposal.predicted == pytest.approx(1 / (1 - 0.5 * 0.8))
    with pytest.raises(NotApplicable, match="no hot line of your own sums a product"):
        REMEDY.propose(context(tmp_path, 0.01))

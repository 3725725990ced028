"""Tensors of lists, read by way of NumPy: the same tensors, and the same errors, as torch makes of them."""

from __future__ import annotations

import libcst as cst
import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from optimize_builders import make_context, make_module, make_report

from unstall.optimize.remedies.listed_tensors import REMEDY
from unstall.optimize.rewrites.listed_tensors import by_arrays, listed_tensors
from unstall.optimize.runtime.listed_tensors import _ListedTensors
from unstall.optimize.source.errors import NameTaken, NotApplicable
from unstall.records.report import Hotspot

COLLATE = """import torch as T


def collate(rows, device):
    ids = T.tensor([row[0] for row in rows], device=device)
    scale = T.tensor(0.5)
    named = T.tensor(data=rows)
    return ids, T.FloatTensor([row[1] for row in rows]) * scale
"""

SCALARS = st.one_of(
    st.integers(-(2**70), 2**70), st.integers(-3, 3), st.floats(), st.booleans(), st.sampled_from([1e300, 2**53 + 1, 2**63]),
    st.sampled_from([np.float32(1.7), np.float64(0.1), np.int32(-4), np.uint8(255), np.bool_(True), np.float16(0.1)]),
    st.sampled_from([None, "a", 1j, torch.tensor(3.0), np.array(1.5)]),
)  # fmt: skip
KINDS = [
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.booleans(),
    st.sampled_from([np.float32(0.1), np.float32(3e38)]),
]


def rows_of(leaves):
    """Lists of one depth and length each, mostly."""
    flat = st.lists(leaves, max_size=5)
    deep = st.integers(0, 3).flatmap(
        lambda length: st.lists(st.lists(leaves, min_size=length, max_size=length), max_size=4)
    )
    return st.one_of(flat, flat.map(tuple), deep, st.lists(flat, max_size=3))


@st.composite
def arrays(draw):
    dtypes = st.sampled_from(["f4", "f8", "f2", "i8", "i4", "u1", "u8", "?", ">f4", "c8"])
    shapes = st.sampled_from([(), (3,), (2, 2), (0,)])
    dtype, shape = draw(dtypes), draw(shapes)
    made = [np.full(shape, draw(st.integers(0, 3))).astype(dtype) for _ in range(draw(st.integers(1, 4)))]
    if draw(st.integers(0, 5)) == 0:
        made.append(np.full(draw(shapes), 1).astype(draw(dtypes)))
    return made


DATA = st.one_of(
    rows_of(SCALARS), *map(rows_of, KINDS), arrays(), st.floats(), st.just(np.ones(2)), st.just(torch.ones(2))
)
DTYPES = st.sampled_from([None, torch.float32, torch.float64, torch.int64, torch.int32, torch.bool, torch.float16])


def outcome(make):
    """What a call gives or raises, in a form that may be compared to the bit."""
    try:
        made = make()
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        return type(error), str(error)
    return (
        made.dtype,
        made.shape,
        made.device,
        made.requires_grad,
        made.is_contiguous(),
        made.numpy(force=True).tobytes(),
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
@given(DATA, st.sampled_from([torch.tensor, torch.as_tensor]), DTYPES)
@example([np.array([False])], torch.tensor, torch.int64)
def test_the_tensor_is_that_of_torch_to_the_bit(data, constructor, dtype):
    options = {} if dtype is None else {"dtype": dtype}
    made = outcome(lambda: _ListedTensors.make(constructor, data, **options))
    assert made == outcome(lambda: constructor(data, **options))


@pytest.mark.filterwarnings("ignore::UserWarning")
@given(DATA, st.sampled_from([torch.Tensor, torch.FloatTensor, torch.DoubleTensor, torch.LongTensor, torch.IntTensor]))
def test_and_of_the_constructors_of_one_type(data, constructor):
    assert outcome(lambda: _ListedTensors.make(constructor, data)) == outcome(lambda: constructor(data))


def test_options_and_the_default_dtype_are_those_of_the_program():
    assert _ListedTensors.make(torch.tensor, [[1.5]], requires_grad=True).requires_grad
    torch.set_default_dtype(torch.float64)
    try:
        assert _ListedTensors.make(torch.tensor, [[1.5]]).dtype == torch.float64
        assert _ListedTensors.make(torch.Tensor, [[1]]).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def rewritten(source=COLLATE):
    module = make_module(source)
    (function,) = module.all(cst.FunctionDef)
    return by_arrays(module, list(listed_tensors(module, function))).code


def test_the_calls_change_and_nothing_else():
    changed = rewritten()
    assert "    ids = _ListedTensors.make(T.tensor, [row[0] for row in rows], device=device)\n" in changed
    assert "    return ids, _ListedTensors.make(T.FloatTensor, [row[1] for row in rows]) * scale\n" in changed
    assert "T.tensor(0.5)" in changed and "T.tensor(data=rows)" in changed
    space: dict = {}
    exec(compile(changed, "collate.py", "exec"), space)
    ids, values = space["collate"]([(1, 0.5), (2, 0.25)], "cpu")
    assert ids.tolist() == [1, 2] and values.tolist() == [0.25, 0.125]


def test_a_file_that_has_the_name_for_something_else_is_left():
    with pytest.raises(NameTaken, match="uses the name numpy"):
        rewritten(COLLATE + "\n\nnumpy = None\n")


def proposals(tmp_path, source, line, share):
    path = tmp_path / "train.py"
    path.write_text(source)
    spot = Hotspot(function="collate", file=str(path), line=line, share=share, phase="other")
    return REMEDY.propose(make_context(tmp_path, report=make_report(hotspots=[spot])))


def test_it_is_proposed_for_functions_with_hot_lines(tmp_path):
    (proposal,) = proposals(tmp_path, COLLATE, 5, 0.5)
    assert (proposal.title, proposal.key) == ("reads lists by way of NumPy (train.py:5)", "train.py:collate")
    for line, share in ((5, 0.01), (6, 0.5)):
        with pytest.raises(NotApplicable, match="no hot line"):
            proposals(tmp_path, COLLATE, line, share)


def test_and_for_the_top_level_of_a_script(tmp_path):
    (proposal,) = proposals(tmp_path, COLLATE + "\n\nwhile True:\n    T.tensor(ask())\n", 12, 0.5)
    assert proposal.key == "train.py:<module>"
    assert proposal.sources.module(tmp_path / "train.py").tree.code.count("_ListedTensors.make") == 1


def test_and_for_each_of_two_methods_of_one_name(tmp_path):
    path = tmp_path / "train.py"
    method = "class {}:\n    def forward(self, rows):\n        return T.tensor(rows)\n\n\n"
    path.write_text("import torch as T\n\n\n" + method.format("Near") + method.format("Far"))
    spots = [Hotspot(function="forward", file=str(path), line=at, share=0.3, phase="other") for at in (6, 11)]
    proposals = REMEDY.propose(make_context(tmp_path, report=make_report(hotspots=spots)))
    assert [proposal.key for proposal in proposals] == ["train.py:Near.forward", "train.py:Far.forward"]

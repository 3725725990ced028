"""Joins in spare room: the same values as torch and NumPy give, and only where nothing is changed in place."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from optimize_builders import make_context, make_module, make_report

from unstall.optimize.remedies.growable_buffer import REMEDY
from unstall.optimize.rewrites.growable_buffer import in_spare_room, joins, refuse_changes_in_place
from unstall.optimize.runtime.joined_arrays import _JoinedArrays
from unstall.optimize.runtime.joined_tensors import _JoinedTensors
from unstall.optimize.source.errors import AnalysisRefused, NotApplicable
from unstall.records.report import Hotspot

METRIC = """import numpy as xp
import torch


class Metric:
    def __init__(self):
        self.errors = torch.empty(0)
        self.lengths = xp.empty(0)

    def update(self, errors, length):
        # one after the other
        self.errors = torch.cat([self.errors, errors], dim=0)
        self.lengths = xp.append(self.lengths, length)
"""


def rewritten(source):
    module = make_module(source)
    found = list(joins(module))
    for join in found:
        refuse_changes_in_place(module, join)
    return in_spare_room(module, found).code if found else source


def test_both_joins_are_rewritten_and_the_rest_of_the_file_stays():
    changed = rewritten(METRIC)
    assert (
        "        # one after the other\n"
        "        self.errors = _JoinedTensors.join(self.errors, errors)\n"
        "        self.lengths = _JoinedArrays.append(self.lengths, length)\n"
    ) in changed
    assert changed.startswith("import numpy\nimport numpy as xp\nimport torch\nimport weakref\n")
    metrics = []
    for source in (METRIC, changed):
        space: dict = {}
        exec(compile(source, "metric.py", "exec"), space)
        metrics.append(space["Metric"]())
        for step in range(40):
            metrics[-1].update(torch.arange(float(step % 3)), step)
    before, after = metrics
    assert torch.equal(before.errors, after.errors)
    assert np.array_equal(before.lengths, after.lengths)


@pytest.mark.parametrize(
    ("source", "call"),
    [
        ("x = torch.cat((x, new), 0)", "_JoinedTensors.join(x, new)"),
        ("x = torch.concat((x, new), axis=0)", "_JoinedTensors.join(x, new)"),
        ("seen['loss'] = torch.cat([seen['loss'], f(1)])", "_JoinedTensors.join(seen['loss'], f(1))"),
        ("x = np.append(x, [1, 2])", "_JoinedArrays.append(x, [1, 2])"),
        ("x = np.append(x, new, axis=0)", "_JoinedArrays.concatenate(x, new)"),
        ("x = np.append(x, new, 0)", "_JoinedArrays.concatenate(x, new)"),
        ("x = np.concatenate([x, new])", "_JoinedArrays.concatenate(x, new)"),
        ("x = np.vstack((x, new))", "_JoinedArrays.vstack(x, new)"),
        ("x = np.hstack([x, new])", "_JoinedArrays.hstack(x, new)"),
    ],
)
def test_every_spelling(source, call):
    assert f" = {call}\n" in rewritten(f"import numpy as np\nimport torch\n{source}\n")


@pytest.mark.parametrize(
    "source",
    [
        "x = torch.cat([new, x])",
        "y = torch.cat([x, new])",
        "x = torch.cat([x, new], dim=1)",
        "x = torch.cat([x, new, more])",
        "x = torch.cat([x, *new])",
        "x = torch.cat(parts)",
        "x = torch.cat([x, new], out=y)",
        "x = np.append(x, new, axis=1)",
        "f().x = torch.cat([f().x, new])",
        "x[i] = torch.cat([x[i], new])",
        "x = cat([x, new])",
    ],
)
def test_other_joins_stay_as_they_are(source):
    assert not list(joins(make_module(f"import numpy as np\nimport torch\n{source}\n")))


@pytest.mark.parametrize(
    "change", ["x[0] = 1", "x += 1", "x.mul_(2)", "x[1:].fill_(0)", "torch.add(y, 1, out=x)", "x.sort()", "del x[0]"]
)
def test_what_is_changed_in_place_is_left_alone(change):
    with pytest.raises(AnalysisRefused, match=r"line 3 changes x in place"):
        rewritten(f"import torch\nx = torch.cat([x, new])\n{change}\n")


def test_an_attribute_that_is_changed_in_place_elsewhere_is_left_alone():
    source = METRIC + "\n    def reset(self, other):\n        other.errors.zero_()\n"
    with pytest.raises(AnalysisRefused, match=r"changes self\.errors in place"):
        rewritten(source)


def case(tmp_path, line):
    (tmp_path / "metric.py").write_text(METRIC)
    spot = Hotspot(function="Metric.update", file=str(tmp_path / "metric.py"), line=line, share=0.6, phase="callbacks")
    return make_context(tmp_path, report=make_report(hotspots=[spot], phases={"callbacks": 0.6, "forward": 0.4}))


def test_a_hot_join_is_proposed_with_those_beside_it(tmp_path):
    (proposal,) = REMEDY.propose(case(tmp_path, METRIC[: METRIC.index("torch.cat")].count("\n") + 1))
    assert proposal.title == "update joins in spare room (metric.py:12)"
    assert proposal.predicted == pytest.approx(1 / (1 - 0.6 * 0.95))
    (changed,) = proposal.sources.changed.values()
    assert b"_JoinedTensors.join(" in changed and b"_JoinedArrays.append(" in changed


def test_joins_that_take_no_time_are_not(tmp_path):
    with pytest.raises(NotApplicable, match="update joins nothing to itself that takes time"):
        REMEDY.propose(case(tmp_path, 7))


# ------------------------------------------------------------------ what the patch brings along


def test_only_new_rows_are_copied_while_there_is_room():
    joined = _JoinedTensors.join(torch.arange(4.0), torch.arange(2.0))
    longer = _JoinedTensors.join(joined, torch.ones(3))
    assert longer.data_ptr() == joined.data_ptr()
    assert joined.tolist() == [0, 1, 2, 3, 0, 1]
    assert longer.tolist() == [0, 1, 2, 3, 0, 1, 1, 1, 1]


def test_the_room_behind_a_tensor_is_given_once():
    joined = _JoinedTensors.join(torch.arange(4.0), torch.arange(2.0))
    one, other = _JoinedTensors.join(joined, torch.ones(1)), _JoinedTensors.join(joined, torch.zeros(1))
    assert (one.tolist(), other.tolist()) == ([0, 1, 2, 3, 0, 1, 1], [0, 1, 2, 3, 0, 1, 0])


def test_a_view_of_something_longer_is_copied():
    whole = torch.arange(10.0)
    assert _JoinedTensors.join(whole[:4], torch.zeros(2)).tolist() == [0, 1, 2, 3, 0, 0]
    array = np.arange(10.0)
    assert _JoinedArrays.append(array[:4], [7]).tolist() == [0, 1, 2, 3, 7]
    assert whole.tolist() == array.tolist() == list(range(10))


def test_a_tensor_whose_memory_was_put_elsewhere_is_copied():
    joined = _JoinedTensors.join(torch.arange(4.0), torch.arange(2.0))
    joined.data = torch.full((6,), 9.0)
    assert _JoinedTensors.join(joined, torch.ones(1)).tolist() == [9] * 6 + [1]


def test_autograd_may_have_kept_an_earlier_tensor():
    weight = torch.ones(6, requires_grad=True)
    joined = _JoinedTensors.join(torch.arange(4.0), torch.arange(2.0))
    loss = (weight * joined).sum()
    _JoinedTensors.join(joined, torch.ones(3))
    loss.backward()
    assert weight.grad.tolist() == [0, 1, 2, 3, 0, 1]


def test_what_autograd_follows_is_joined_by_torch():
    weight = torch.ones(2, requires_grad=True)
    joined = _JoinedTensors.join(torch.zeros(2), weight)
    joined.sum().backward()
    assert weight.grad.tolist() == [1, 1]
    with torch.no_grad():
        assert not _JoinedTensors.join(joined, weight).requires_grad


def test_tensors_cross_the_border_of_inference_mode_both_ways():
    normal = _JoinedTensors.join(torch.zeros(2), torch.ones(1))
    with torch.inference_mode():
        inside = _JoinedTensors.join(normal, torch.ones(1))
        inside = _JoinedTensors.join(inside, torch.ones(1))
        assert inside.is_inference()
    outside = _JoinedTensors.join(inside, torch.ones(1))
    assert not outside.is_inference()
    assert outside.tolist() == [0, 0, 1, 1, 1, 1]


def test_nothing_is_kept_of_what_is_gone():
    gc.collect()
    before = len(_JoinedTensors.buffers), len(_JoinedArrays.buffers)
    tensor, array = torch.zeros(1), np.zeros(1)
    for _ in range(20):
        tensor, array = _JoinedTensors.join(tensor, torch.ones(1)), _JoinedArrays.append(array, 1.0)
    del tensor, array
    assert (len(_JoinedTensors.buffers), len(_JoinedArrays.buffers)) == before


def same(found, wanted):
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert found.tolist() == wanted.tolist()


TENSORS = st.builds(
    lambda shape, dtype, start: torch.arange(start, start + int(np.prod(shape)), dtype=dtype).reshape(shape),
    st.lists(st.integers(0, 3), min_size=1, max_size=3),
    st.sampled_from([torch.float32, torch.int64, torch.float64]),
    st.integers(0, 5),
)


@given(st.lists(TENSORS, min_size=2, max_size=6))
def test_tensors_are_those_of_torch_whatever_is_joined(parts):
    found = wanted = parts[0]
    for part in parts[1:]:
        try:
            wanted = torch.cat([wanted, part])
        except RuntimeError:
            with pytest.raises(RuntimeError):
                _JoinedTensors.join(found, part)
            return
        found = _JoinedTensors.join(found, part)
        same(found, wanted)


ROWS = st.one_of(
    st.integers(-5, 5),
    st.floats(-1, 1),
    st.lists(st.integers(0, 9), max_size=3),
    st.text(max_size=3),
    TENSORS.map(lambda tensor: tensor.numpy()),
    TENSORS.map(lambda tensor: np.asfortranarray(tensor.numpy())),
)


@given(TENSORS, st.lists(ROWS, min_size=1, max_size=5), st.sampled_from(["append", "concatenate", "vstack", "hstack"]))
def test_arrays_are_those_of_numpy_whatever_is_joined(first, parts, way):
    by_numpy = getattr(np, way) if way == "append" else lambda old, new: getattr(np, way)([old, new])
    found = wanted = first.numpy()
    for part in parts:
        try:
            wanted = by_numpy(wanted, part)
        except ValueError:
            with pytest.raises(ValueError):
                getattr(_JoinedArrays, way)(found, part)
            return
        found = getattr(_JoinedArrays, way)(found, part)
        same(found, wanted)
        assert found.flags.c_contiguous == wanted.flags.c_contiguous

"""What is computed again from the same values: real operators, told as the counter tells them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.child import recomputation
from unstall.child.recomputation import Call, Contents, RepeatedCalls, Work

torch = pytest.importorskip("torch", reason="looks at the operators of torch")
dispatch = pytest.importorskip("torch.utils._python_dispatch")


class Told(dispatch.TorchDispatchMode):
    """Each operator takes a second; keeps what is told of it, and what it returned."""

    def __init__(self, contents=None):
        super().__init__()
        self.recomputation = RepeatedCalls(contents or Contents(torch))
        self.work = Work()
        self.results = {}
        self.again = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        before = self.work.again
        self.recomputation.add(Call(func, args, kwargs or {}, out), 1.0, self.work)
        if self.work.again > before:
            self.again.append(func.overloadpacket.__name__)
            assert any(torch.equal(out, earlier) for earlier in self.results[func])
        if isinstance(out, torch.Tensor):
            self.results.setdefault(func, []).append(out.clone())
        return out


def again(program, *tensors):
    with Told() as told:
        program(*tensors)
    return told.again


def matrices():
    return torch.randn(8, 8), torch.randn(8, 8)


def test_the_same_values_are_the_same_whatever_tensor_holds_them():
    a, b = matrices()
    assert again(lambda: (a @ b, a.clone() @ b)) == ["mm"]
    assert again(lambda: (a @ b, a.t() @ b, a @ b.t())) == []


def test_what_is_computed_from_what_was_computed_again_is_so_too():
    a, b = matrices()
    assert again(lambda: [(a @ b).relu() for _ in range(3)]) == ["mm", "relu"] * 2


def test_values_that_were_written_to_in_between_are_others():
    a, b = matrices()
    assert again(lambda: (a @ b, a.add_(1), a @ b)) == []
    with torch.inference_mode():
        a, b = matrices()
        assert again(lambda: (a @ b, a.add_(1), a @ b, a @ b)) == ["matmul"]


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_a_sparse_tensor_is_the_same_as_long_as_nobody_writes_to_it(layout):
    a, b = matrices()
    graph, other = getattr(a, layout)(), getattr(a, layout)()
    assert again(lambda: [torch.sparse.mm(graph, b) for _ in range(3)]).count("_sparse_addmm") == 2
    assert "mm" not in "".join(again(lambda: (torch.sparse.mm(graph, b), torch.sparse.mm(graph, a))))
    assert "mm" not in "".join(again(lambda: (torch.sparse.mm(graph, b), torch.sparse.mm(other, b))))
    numbers = graph.values() if layout == "to_sparse_csr" else graph._values()
    assert "mm" not in "".join(again(lambda: (torch.sparse.mm(graph, b), numbers.mul_(2), torch.sparse.mm(graph, b))))


def test_values_that_numpy_wrote_to_are_others():
    numpy = pytest.importorskip("numpy")
    array = numpy.ones((4, 4), dtype=numpy.float32)
    a, b = torch.from_numpy(array), torch.ones(4, 4)

    def program():
        a @ b
        array[0, 0] = 2
        a @ b

    assert again(program) == []


def test_other_settings_are_another_computation():
    a, _ = matrices()
    assert again(lambda: (a.sum(0), a.sum(1), a.sum(0, keepdim=True), a.to(torch.float64), a.to(torch.int64))) == []
    assert again(lambda: (a * 1, a * True, a * 1.0)) == []


def test_random_numbers_views_and_unwritten_memory_are_never_the_same():
    a, _ = matrices()
    assert again(lambda: [(torch.bernoulli(a.abs().clamp(0, 1)), a.t(), a.new_empty(3)) for _ in range(2)]) == [
        "abs",
        "clamp",
    ]


def test_more_than_may_be_read_is_not_known():
    a, b = matrices()
    with Told(Contents(torch, most_bytes=8)) as told:
        assert torch.equal(a @ b, a @ b)
    assert told.again == []
    with Told(Contents(torch, budget_bytes=1100)) as told:
        for _ in range(9):
            a @ b
    assert len(told.again) == 1  # 256 bytes each time that two matrices are read


def test_of_a_large_storage_only_the_part_in_use_is_read():
    table = torch.randn(10_000, 8)
    with Told(Contents(torch, most_bytes=1000)) as told:
        for row in (3, 3, 4):
            table[row].exp()
        table[3].add_(1)
        table[3].exp()
        table.exp()
    assert told.again == ["exp"]


def test_what_recurs_counts_the_first_time_too():
    a, b = matrices()
    with Told() as told:
        for _ in range(3):
            a @ b
        a.exp()
    assert (told.work.computed_s, told.work.recurring_s, told.work.again_s, told.work.again) == (4, 3, 2, 2)


def test_memory_of_what_was_looked_at_is_given_back():
    import weakref

    a, b = matrices()
    with Told() as told:
        told.results = {}
        product = a @ b
        product.relu()
        reference = weakref.ref(product)
        del product
        assert reference() is None


def test_no_memory_is_kept_of_tensors_that_are_gone():
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    large, began = torch.ones(1_000_000), resident()
    with Told() as told:
        for number in range(100):
            told.results = {}
            (large + number).relu()
    assert resident() - began < 100 * large.nbytes / 2


def test_tensors_without_memory_of_their_own_are_not_known():
    meta = torch.ones(3, 3, device="meta")
    assert again(lambda: [meta @ meta for _ in range(2)]) == []
    assert again(lambda: torch.func.vmap(lambda row: row.exp())(torch.ones(3, 2))) == []


def test_a_torch_that_does_not_tell_addresses_is_not_asked(monkeypatch):
    monkeypatch.delattr(torch._C, "_data_address")
    assert recomputation.of_this_torch() is None


OPERATORS = (
    lambda tensors, i, j: tensors[i] + tensors[j],
    lambda tensors, i, j: tensors[i] @ tensors[j],
    lambda tensors, i, j: tensors[i].relu(),
    lambda tensors, i, j: tensors[i].sum(dim=j % 2, keepdim=True).repeat(*((1, 3) if j % 2 else (3, 1))),
    lambda tensors, i, j: tensors[i].add_(tensors[j].clone()),
    lambda tensors, i, j: tensors[i].zero_(),
    lambda tensors, i, j: tensors[i].t(),
    lambda tensors, i, j: tensors[i].t().mul_(2),
    lambda tensors, i, j: torch.rand(3, 3),
)


@given(
    st.lists(st.tuples(st.sampled_from(OPERATORS), st.integers(0, 3), st.integers(0, 3)), max_size=30), st.booleans()
)
def test_what_is_told_to_be_known_is_bit_for_bit_what_was_computed_before(program, inference):
    with torch.inference_mode(inference):
        tensors = [torch.full((3, 3), float(number)) for number in range(4)]
        with Told():  # which compares
            for operator, i, j in program:
                tensors[j] = operator(tensors, i, j)

"""FLOPs and operators counted by torch's own formulas, with results unchanged."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from unstall.child import flops

torch = pytest.importorskip("torch", reason="counts the operators of torch")


def test_a_matrix_product_counts_two_per_multiply_add():
    a, b = torch.ones(3, 4), torch.ones(4, 5)
    with flops.make_counter() as counter:
        product = a @ b
    assert counter.flops == 2 * 3 * 4 * 5
    assert (counter.known, counter.unknown) == (1, 0)
    assert counter.ops >= 1
    assert torch.equal(product, a @ b)


def test_what_is_written_is_counted_in_place_too_and_what_is_only_looked_at_is_not():
    a = torch.ones(100, 4)
    with flops.make_counter() as counter:
        a.t().view(4, 10, 10).expand(4, 10, 10)
        assert counter.ops >= 3 and counter.written == 0
        a.add_(1)
        assert counter.written == a.nbytes
        torch.max(a, 1)
        assert counter.written == a.nbytes + 100 * (4 + 8)
        a.to_sparse()


def test_forward_and_backward_are_counted_and_gradients_stay_the_same_bit_for_bit():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    x = torch.randn(4, 8)

    def gradients():
        model.zero_grad()
        model(x).sum().backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    plain = gradients()
    with flops.make_counter() as counter:
        counted = gradients()
    assert all(torch.equal(one, other) for one, other in zip(plain, counted))
    forward = 2 * 4 * (8 * 16 + 16 * 2)
    # Backward: the weights' gradients, and those of the hidden layer's input.
    assert counter.flops == forward + forward + 2 * 4 * 16 * 2
    assert counter.unknown == 0


def test_what_goes_wrong_in_timing_is_no_matter_of_the_programs(monkeypatch):
    class Broken:
        def add(self, seconds, frame):
            raise RuntimeError("no account")

    monkeypatch.setattr(flops.op_times, "of_this_torch", Broken)
    a = torch.ones(3, 4)
    with flops.make_counter() as counter:
        assert torch.equal(a + a, 2 * a)
    assert counter.ops >= 2 and counter.times is None


def test_counting_does_not_import_the_compiler_into_a_program_that_does_not_use_it():
    program = """
import sys, torch
from unstall.child import flops
with torch.no_grad(), flops.make_counter() as counter:
    torch.nn.Linear(3, 4)(torch.ones(2, 3))
print(counter.flops, "torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == [str(2 * 2 * 3 * 4), "False"]


def test_inference_mode_is_no_other_matter():
    model, x = torch.nn.Linear(3, 4), torch.ones(2, 3)
    with torch.no_grad(), flops.make_counter() as outside:
        expected = model(x)
    with torch.inference_mode(), flops.make_counter() as inside:
        assert torch.equal(model(x), expected)
    assert inside.flops == outside.flops == 2 * 2 * 3 * 4
    assert (inside.known, inside.unknown) == (outside.known, outside.unknown)


def test_other_kinds_of_tensors_are_left_to_their_own_operators_in_inference_mode():
    model = torch.nn.Linear(3, 4)
    with torch.inference_mode():
        nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)])
        expected, ones = model(nested), torch.ones(2)
        with flops.make_counter() as counter:
            found = model(nested)
            torch.ops.aten.silu_backward(ones, ones)  # has a kernel for the CPU
    assert all(torch.equal(*pair) for pair in zip(found.unbind(), expected.unbind()))
    assert counter.ops == 2 and counter.times is not None


def test_the_end_of_inference_mode_ends_what_a_counter_sees():
    counter, x = flops.make_counter(), torch.ones(3)
    with torch.inference_mode():
        counter.enter()
        assert flops.is_seen() and flops.may_leave(counter)
    assert not flops.is_seen() and flops.may_leave(counter)
    counter.leave()
    assert torch.equal(x + x, 2 * x)


def test_no_counter_is_left_in_inference_mode_that_was_entered_before_it():
    counter, x = flops.make_counter(), torch.ones(3)
    counter.enter()
    with torch.inference_mode():
        assert not flops.may_leave(counter)  # left here, the next operator would fail
    assert flops.may_leave(counter)
    counter.leave()
    assert torch.equal(x + x, 2 * x)


def test_costly_operators_without_a_formula_lower_the_coverage():
    gru = torch.nn.GRU(4, 4)
    x = torch.randn(5, 2, 4)
    with flops.make_counter() as counter, torch.no_grad():
        gru(x)
        torch.fft.fft(x)
    assert counter.unknown >= 1


def test_the_norms_of_clipped_gradients_are_not_costly():
    parameters = [torch.ones(3, 5, requires_grad=True) for _ in range(4)]
    sum((parameter @ torch.ones(5)).sum() for parameter in parameters).backward()
    with flops.make_counter() as counter:
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    assert counter.ops > 4 and counter.unknown == 0


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_a_sparse_product_is_not_counted_as_if_it_were_dense(layout):
    graph, x = getattr(torch.eye(64), layout)(), torch.ones(64, 8)
    with flops.make_counter() as counter:
        torch.sparse.mm(graph, x)
    assert counter.flops == 0 and counter.unknown >= 1


def test_operators_that_compute_little_do_not():
    with flops.make_counter() as counter:
        torch.ones(4) + 1
    assert (counter.flops, counter.known, counter.unknown) == (0, 0, 0)
    assert counter.ops >= 1


def test_the_constants_of_a_traced_model_are_computed_with_as_ever():
    class Scaled(torch.nn.Module):
        def forward(self, x):
            return torch.cumsum(x * 0.5 + 2 - torch.tensor(3), 0)

    x = torch.arange(6.0)
    traced = torch.jit.trace(Scaled(), (x,))
    plain, text = traced(x), str(traced.graph)
    with flops.make_counter() as counter:
        for _ in range(3):  # the later ones are of an optimized graph
            assert torch.equal(traced(x), plain)
        assert str(traced.graph) == text
        again = torch.jit.trace(Scaled(), (x,))
    assert torch.equal(again(x), plain)
    assert counter.ops > 9


def test_what_the_program_does_wrong_is_told_as_ever():
    with flops.make_counter(), pytest.raises(RuntimeError, match="must match"):
        torch.ones(3) + torch.ones(4)


def test_a_formula_that_fails_harms_nothing(monkeypatch):
    from torch.utils import flop_counter

    def broken(*args, **kwargs):
        raise ValueError("no such shape")

    monkeypatch.setitem(flop_counter.flop_registry, torch.ops.aten.mm, broken)
    with flops.make_counter() as counter:
        product = torch.ones(2, 3) @ torch.ones(3, 2)
    assert product.sum() == 12
    assert (counter.flops, counter.unknown) == (0, 1)


def test_the_innermost_mode_is_known():
    outer, inner = flops.make_counter(), flops.make_counter()
    with outer:
        assert flops.innermost_mode() is outer
        with inner:
            assert flops.innermost_mode() is inner
    assert flops.innermost_mode() is None


@pytest.mark.parametrize("frames, expected", [({"ok": 1}, True), ({}, False)])
def test_compiled_programs_are_known_by_dynamos_own_count(monkeypatch, frames, expected):
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", SimpleNamespace(counters={"frames": frames}))
    assert flops.compiled() is expected


def test_without_dynamo_nothing_is_compiled(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch._dynamo.utils", raising=False)
    assert not flops.compiled()


def test_a_tensor_of_a_class_of_the_program_is_counted_without_being_asked():
    class Shy(torch.Tensor):
        @property
        def shape(self):
            raise AssertionError

    counter = flops.make_counter()
    with counter:
        torch.mm(torch.ones(2, 3).as_subclass(Shy), torch.ones(3, 5))
    assert (counter.flops, counter.known, counter.unknown) == (2 * 2 * 3 * 5, 1, 0)

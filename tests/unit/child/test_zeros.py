"""How much of a product is by zeros: read from the memory of real tensors."""

from __future__ import annotations

import numpy
import pytest

from unstall.child import zeros
from unstall.child.recomputation import Call

torch = pytest.importorskip("torch", reason="reads tensors of torch")
aten = torch.ops.aten
LONG = 1.0


@pytest.fixture
def products():
    return zeros.of_this_torch()


def share(products, func, *args, seconds=LONG, of_gradients=False):
    return products.share(Call(func, args, {}, None), seconds, of_gradients=of_gradients)


def rows(count, zero, width=64):
    tensor = torch.rand(count, width) + 0.1
    tensor[:zero] = 0
    return tensor


def test_rows_of_zeros_count_in_either_operand(products):
    full = torch.rand(64, 128) + 0.1
    assert share(products, aten.mm.default, rows(100, 80), full) == pytest.approx(0.8)
    assert share(products, aten.mm.default, rows(100, 80).t(), torch.ones(100, 64)) == pytest.approx(0.8)
    assert share(products, aten.addmm.default, torch.zeros(128), rows(100, 80), full) == pytest.approx(0.8)
    batched = rows(100, 80).expand(3, 100, 64)
    assert share(products, aten.bmm.default, batched, full.expand(3, 64, 128)) == pytest.approx(0.8)


def test_nearly_nothing_but_zeros_counts_wherever_it_stands(products):
    chosen = torch.nn.functional.one_hot(torch.arange(128) % 64, 64).float()
    assert share(products, aten.mm.default, chosen, torch.rand(64, 128)) == pytest.approx(1 - 1 / 64)
    diagonal = torch.eye(32).unsqueeze(-1).repeat(1, 1, 25)
    assert share(products, aten.convolution.default, torch.rand(4, 32, 99), diagonal) == pytest.approx(1 - 1 / 32)
    gradient = torch.rand(4, 32, 75)
    assert share(products, aten.convolution_backward.default, gradient, torch.rand(4, 32, 99), diagonal) > 0.9


def test_what_nobody_computes_without_does_not_count(products):
    full = torch.rand(64, 128) + 0.1
    rectified = torch.relu(torch.randn(100, 64))
    assert share(products, aten.mm.default, rectified, full) == 0
    assert share(products, aten.mm.default, rows(100, 40), full) == 0
    assert share(products, aten.mm.default, rows(100, 100), full) == 0, "as at the beginning of a training"
    weight = torch.nn.Parameter(rows(100, 95))
    assert share(products, aten.mm.default, weight, full) == 0
    assert share(products, aten.mm.default, full.t(), weight.t()) == 0
    assert share(products, aten.relu.default, rows(100, 95)) == 0


def test_of_other_operators_the_rows_of_their_gradient_count(products):
    softmax = aten._log_softmax_backward_data.default
    assert share(products, softmax, rows(100, 85), rows(100, 0), of_gradients=True) == pytest.approx(0.85)
    masked = torch.rand(100, 64) * (torch.rand(100, 64) > 0.95)
    assert share(products, softmax, masked, rows(100, 0), of_gradients=True) == pytest.approx(0, abs=0.5)


def test_what_gradients_of_a_table_are_added_up_to_counts_wherever_rows_were_looked_up(products):
    assert share(products, aten.add.Tensor, rows(100, 85), rows(100, 85), of_gradients=True) == 0


def test_of_a_loss_the_rows_that_come_of_its_gradient_count(products):
    labels = torch.where(torch.arange(100) < 85, -100, 3)
    scores = torch.rand(100, 64).log()
    told = Call(aten.nll_loss_backward.default, (torch.ones(()), scores, labels), {}, rows(100, 85))
    assert products.share(told, LONG, of_gradients=True) == pytest.approx(0.85)


def test_what_is_small_or_quick_or_too_much_is_not_read():
    read = zeros.Zeros(torch, numpy, budget_bytes=30_000)
    zeroed, full = rows(100, 80), torch.rand(64, 40) + 0.1
    assert share(read, aten.mm.default, zeroed, full, seconds=1e-6) == 0
    assert share(read, aten.mm.default, rows(10, 8), full) == 0
    assert share(read, aten.mm.default, zeroed, full) == pytest.approx(0.8)
    assert share(read, aten.mm.default, zeroed, full) == 0, "the budget is spent"


def test_memory_that_was_given_back_is_not_read(products):
    zeroed, full = rows(100, 80), torch.rand(64, 128) + 0.1
    zeroed.untyped_storage().resize_(0)
    assert share(products, aten.mm.default, zeroed, full) == 0


def test_numbers_of_half_the_precision_are_read_too(products):
    zeroed = rows(100, 80).to(torch.bfloat16)
    assert share(products, aten.mm.default, zeroed, torch.ones(64, 128, dtype=torch.bfloat16)) == pytest.approx(0.8)
    assert share(products, aten.mm.default, zeroed.long(), torch.ones(64, 128).long()) == 0

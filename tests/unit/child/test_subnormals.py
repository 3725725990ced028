"""How many of an optimizer's numbers are subnormal: of real optimizers of torch."""

from __future__ import annotations

import pytest

from unstall.child import subnormals

torch = pytest.importorskip("torch", reason="reads an optimizer of torch")

ROWS, WIDTH = 50, 64


def stepped(dtype=torch.float32, **options):
    """An optimizer after one step, and its moving averages of the gradient."""
    weight = torch.nn.Parameter(torch.ones(ROWS, WIDTH, dtype=dtype))
    optimizer = torch.optim.Adam([weight], **options)
    weight.grad = torch.ones_like(weight)
    optimizer.step()
    return optimizer, optimizer.state[weight]


@pytest.mark.parametrize(("dtype", "small"), [(torch.float32, 1e-40), (torch.float64, 1e-310)])
@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_below_the_smallest_normal_one_count(dtype, small, sign):
    optimizer, state = stepped(dtype)
    assert subnormals.share(optimizer) == 0
    state["exp_avg"][: ROWS // 5] = sign * small
    assert subnormals.share(optimizer) == pytest.approx(0.1, rel=0.01), "of one of two, a fifth"


def test_zeros_and_the_smallest_normal_number_do_not():
    optimizer, state = stepped()
    state["exp_avg"].zero_()
    state["exp_avg_sq"].fill_(torch.finfo(torch.float32).tiny)
    assert subnormals.share(optimizer) == 0


def test_what_an_unused_row_becomes_is_seen():
    """As in an embedding: the average halves every seventh step, and nobody adds to it."""
    optimizer, state = stepped()
    for _ in range(850):
        state["exp_avg"].mul_(0.9)
    assert subnormals.share(optimizer) == pytest.approx(0.5, rel=0.01)


def test_large_tensors_are_read_in_part_and_counted_whole():
    weight = torch.nn.Parameter(torch.ones(1 << 20))
    optimizer = torch.optim.SGD([weight], momentum=0.9)
    weight.grad = torch.ones_like(weight)
    optimizer.step()
    optimizer.state[weight]["momentum_buffer"][: 1 << 18] = 1e-40
    assert subnormals.share(optimizer) == pytest.approx(0.25, abs=0.01)


def test_what_keeps_nothing_or_is_of_another_kind_has_none():
    weight = torch.nn.Parameter(torch.ones(3))
    assert subnormals.share(torch.optim.SGD([weight])) == 0
    assert subnormals.share(object()) == 0
    optimizer, state = stepped()
    state["exp_avg"] = state["exp_avg"].to_sparse()
    state["note"] = "a word"
    state["half"] = torch.full((8, 8), 1e-7, dtype=torch.float16)
    assert subnormals.share(optimizer) == 0

"""What backward spends inside a function, by hooks that look on."""

import pytest
import torch

from unstall.simplify import backpropagation
from unstall.simplify.backpropagation import Backpropagation


class Clock:
    """Time that passes only in the backward of :class:`Slow`."""

    now = 0.0

    def __call__(self):
        return self.now


CLOCK = Clock()


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    monkeypatch.setattr(backpropagation, "monotonic", CLOCK)


class Slow(torch.autograd.Function):
    """The same values; backward takes a second."""

    @staticmethod
    def forward(ctx, values):
        return values.view_as(values)

    @staticmethod
    def backward(ctx, gradient):
        CLOCK.now += 1
        return gradient


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, values):
        return Slow.apply(self.weight * 1) * values


@pytest.fixture
def inside():
    """What is told: seconds inside, each time that backward left."""
    return []


@pytest.fixture
def watch(inside):
    return Backpropagation(lambda left, seconds: inside.append(seconds))


def call(watch, module, values):
    answer = module(values)
    watch.follow(answer, (module, values), {})
    return answer


def test_a_module_that_takes_data_is_left_with_its_last_parameter(watch, inside):
    net = Net()
    for _ in range(2):
        Slow.apply(call(watch, net, torch.ones(4))).sum().backward()  # of the loss, outside of it
        CLOCK.now += 1
    watch.close()
    assert inside == [1, 1]


def test_a_module_between_others_is_left_with_the_gradient_of_its_input(watch, inside):
    first, second = Net(), Net()
    call(watch, second, first(torch.ones(4))).sum().backward()
    watch.close()
    assert inside == [1]


def test_calls_that_feed_each_other_count_one_after_the_other(watch, inside):
    net, state = Net(), torch.ones(4)
    for _ in range(3):
        state = Slow.apply(call(watch, net, state))
    state.sum().backward()
    watch.close()
    assert inside == [1, 1, 1]


def test_gradients_are_what_they_were(watch):
    net, values = Net(), torch.arange(4.0)
    call(watch, net, values).sum().backward()
    watch.close()
    assert torch.equal(net.weight.grad, values)
    net.weight.grad = None
    net(values).sum().backward()
    assert torch.equal(net.weight.grad, values)


@pytest.mark.parametrize("answer", [None, 3, "text", torch.ones(2), [torch.ones(1)] * 1000, {"rows": [1, 2]}])
def test_answers_without_gradients_have_no_backward(watch, inside, answer):
    watch.follow(answer, (torch.nn.Linear(2, 2),), {})
    assert watch.close() == 0 and not inside


def test_zeros_for_all_gradients_are_timed_for_each_backward(watch, monkeypatch):
    net = Net()
    for _ in range(3):
        call(watch, net, torch.ones(4)).sum().backward()
    monkeypatch.setattr(backpropagation, "_zeros_s", len)  # a second for each parameter
    assert watch.close() == 3


def test_zeros_take_longer_for_larger_gradients(monkeypatch):
    monkeypatch.undo()
    small, large = (backpropagation._zeros_s([torch.nn.Parameter(torch.ones(size))]) for size in (1, 1 << 25))
    assert 0 < small < large

"""Gradients that flow through recorded answers, as zeros."""

import gc
import weakref

import pytest
import torch

from unstall.child.experiments import gradients, replay

LARGE, SMALL = 100_000, 3


def zeros(parameters):
    return all(one.grad is not None and not one.grad.any() for one in parameters)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_they_reach_all_parameters_in_every_step(size):
    model = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Linear(2, size))
    inputs = torch.randn(1, 4)
    returned = model(inputs)
    answer = replay.giver(returned)
    for _ in range(2):
        model.zero_grad()
        given = answer((model, inputs), {})
        assert torch.equal(given, returned) and given.requires_grad
        given.sum().backward()
        assert zeros(model.parameters())


def test_several_answers_share_a_step():
    model, inputs = torch.nn.Linear(4, 2), torch.randn(1, 4)
    answers = [replay.giver(model(inputs)) for _ in range(3)]
    sum(one((model, inputs), {}).sum() for one in answers).backward()
    assert zeros(model.parameters())


def test_they_reach_what_came_before():
    first, second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)
    answer = replay.giver(second(torch.randn(1, 4)))
    hidden = first(torch.randn(1, 4))
    answer((second,), {"state": [hidden]}).sum().backward()
    assert zeros(first.parameters()) and zeros(second.parameters())


def test_parameters_that_take_gradients_now_are_those_that_are_reached():
    model = torch.nn.Linear(4, 2)
    answer = replay.giver(model(torch.randn(1, 4)))
    model.weight.requires_grad_(False)
    answer((model,), {}).sum().backward()
    assert model.weight.grad is None and zeros([model.bias])
    model.weight.requires_grad_(True)
    answer((model,), {}).sum().backward()
    assert zeros(model.parameters())
    model.requires_grad_(False)
    assert not answer((model,), {}).requires_grad


def test_what_the_caller_changes_does_not_reach_the_next_answer():
    model = torch.nn.Linear(4, 2)
    answer = replay.giver(model(torch.randn(1, 4)))
    before = answer((model,), {}).detach().clone()
    answer((model,), {}).mul_(2)
    assert torch.equal(answer((model,), {}), before)


def test_without_gradients_none_are_asked_for():
    model = torch.nn.Linear(4, 2)
    answer = replay.giver(model(torch.randn(1, 4)))
    with torch.no_grad():
        assert not replay.giver(torch.ones(2))((), {}).requires_grad
        assert not answer((model,), {}).requires_grad
    assert not answer((), {}).requires_grad, "no input takes any"


def test_a_model_that_the_program_drops_is_not_kept():
    model = torch.nn.Linear(4, 2)
    gradients.through(torch.ones(2), (model,), {}).sum().backward()
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None

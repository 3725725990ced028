"""Weights and inputs that are off by one unit in the last place."""

from __future__ import annotations

import types

import pytest

from unstall.child.trial import Unseen, perturb

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_weights_are_off_by_one_or_two_places_once(dtype):
    generator = torch.Generator().manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(1000, generator=generator).to(dtype))
    before = weight.detach().clone()
    perturbation = perturb.Perturbation(0)
    perturbation.weights([weight])
    change = ((weight.detach().double() - before.double()) / before.double()).abs() / torch.finfo(dtype).eps
    assert (change > 0.4).all() and (change < 2.1).all()
    up = (weight.detach().abs() > before.abs()).double().mean()
    assert 0.4 < up < 0.6
    after = weight.detach().clone()
    perturbation.weights([weight])
    assert torch.equal(weight.detach(), after)


def test_the_seed_says_which_and_no_random_number_of_the_programs_is_drawn():
    def perturbed(seed):
        weight = torch.nn.Parameter(torch.linspace(1, 2, 100))
        perturb.Perturbation(seed).weights([weight])
        return weight.detach()

    state = torch.random.get_rng_state()
    assert torch.equal(perturbed(1), perturbed(1)) and not torch.equal(perturbed(1), perturbed(2))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_inputs_keep_their_form_their_gradient_and_their_whole_numbers():
    x = torch.tensor([0.3, 2.0, 0.0, -torch.inf], requires_grad=True)
    labels = torch.tensor([1, 2])
    given = {"x": (x, [labels, "text", None])}
    found = perturb.Perturbation(0).inputs(given)
    changed, (same, text, nothing) = found["x"]
    assert changed[0] != x[0] and torch.equal(changed[1:], x[1:]) and changed[0].item() == pytest.approx(0.3)
    assert same is labels and (text, nothing) == ("text", None)
    changed[0].backward()
    assert x.grad[0] == pytest.approx(1.0)


@pytest.fixture
def module_class(monkeypatch):
    """``torch.nn.modules.module`` to be changed, put back afterwards."""
    monkeypatch.setattr(torch.nn.Module, "__call__", torch.nn.Module.__call__)
    return types.SimpleNamespace(Module=torch.nn.Module)


def test_only_outermost_calls_that_the_program_makes_are_perturbed(module_class):
    ((_, before_calls), _) = perturb.targets({"seed": 0}, "")
    before_calls(module_class)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    x = torch.tensor([[0.3, 0.7]])
    weights = [parameter.detach().clone() for parameter in model.parameters()]

    def changed():
        return [not torch.equal(parameter.detach(), old) for parameter, old in zip(model.parameters(), weights)]

    with Unseen():
        model(x)
    assert not any(changed())
    hidden = []
    model[0].register_forward_hook(lambda module, args, output: hidden.append((args[0], output)))
    model[1].register_forward_hook(lambda module, args, output: hidden.append((args[0], output)))
    model(x)
    (given, inner), (passed_on, _) = hidden
    assert all(changed()) and not torch.equal(given, x) and passed_on is inner


def test_in_a_block_weights_are_perturbed_and_then_as_they_were(module_class):
    perturb.before_calls(module_class, lambda: perturb.current)
    model, x = torch.nn.Linear(3, 3), torch.randn(4, 3)
    before, plain = model.weight.detach().clone(), model(x)
    with perturb.Perturbation(1):
        inside = model(x)
    assert not torch.equal(inside, plain) and torch.allclose(inside, plain, rtol=1e-4, atol=1e-6)
    assert torch.equal(model.weight, before) and torch.equal(model(x), plain)


def test_weights_without_a_model_are_perturbed_at_the_first_step(monkeypatch):
    hooks = []
    _, (_, before_steps) = perturb.targets({"seed": 0}, "")
    before_steps(types.SimpleNamespace(register_optimizer_step_pre_hook=hooks.append))
    weight = torch.ones(5, requires_grad=True)
    hooks[0](torch.optim.SGD([weight], lr=0.1), (), {})
    assert (weight != 1).all()

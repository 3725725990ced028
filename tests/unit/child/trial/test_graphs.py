"""Of how many steps autograd's graph is alive."""

from __future__ import annotations

import pytest
import torch

from unstall.child.trial.graphs import Graphs

_KEPT = {"a list of losses": lambda kept, loss: [*kept, loss], "their sum": lambda kept, loss: [sum(kept) + loss]}


def train(keep, steps=3):
    """A step a turn: how many graphs are alive after each."""
    model, graphs, kept = torch.nn.Linear(4, 1), Graphs(), []
    for _ in range(steps):
        loss = model(torch.ones(1, 4)).square().sum()
        graphs.backward((loss,))
        loss.backward()
        kept = keep(kept, loss)
        yield graphs.alive()


@pytest.mark.parametrize("how", _KEPT)
def test_whatever_keeps_a_loss_keeps_the_graph_of_its_step(how):
    assert [*train(_KEPT[how])] == [1, 2, 3]


def test_what_is_detached_keeps_none():
    assert [*train(lambda kept, loss: [*kept, loss.detach()])] == [1, 1, 1]


def test_a_loss_without_a_graph_and_one_that_goes_backward_twice_count_once():
    graphs = Graphs()
    loss = torch.ones(2, requires_grad=True).sum()
    for _ in range(2):
        graphs.backward((loss, torch.ones(1)))
    assert graphs.alive() == 1

"""Gradients that one optimizer's backward computes for another, which drops them: real models and optimizers."""

from __future__ import annotations

import sys

import pytest

from unstall.child import dropped_gradients, op_times

torch = pytest.importorskip("torch", reason="watches the gradients of torch")

PROGRAM = """
import torch


class Maker(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 3)

    def forward(self, x):
        return self.layer(x).tanh()


class Judge(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, x):
        return self.layer(x)


def judge_step(told, maker, judge, optimizer):
    noise = torch.ones(4, 2)
    told.called(maker, noise)
    made = maker(noise)
    learn(told, judge, made, optimizer)


def learn(told, judge, made, optimizer):
    told.called(judge, made)
    loss = judge(made).mean()
    optimizer.zero_grad()
    loss.backward()
    told.stepping(optimizer)
    optimizer.step()


def maker_step(told, maker, judge, optimizer):
    noise = torch.ones(4, 2)
    told.called(maker, noise)
    made = maker(noise)
    told.called(judge, made)
    loss = judge(made).mean()
    optimizer.zero_grad()
    loss.backward()
    told.stepping(optimizer)
    optimizer.step()
"""


class Told:
    """As the watcher tells it; the backward of a model's call takes a second, and five at the line that steps."""

    def __init__(self):
        self.dropped = dropped_gradients.of_this_torch()
        self.of_model = "Maker"
        self.inside = True
        """Whether the frame of the model's forward is on the way to its operators."""
        self.beside = None
        """Another model that the same line calls."""
        self.way = ()

    def called(self, model, given):
        path = op_times.program_path(sys._getframe(1))
        if type(model).__name__ == self.of_model:
            self.way = (*path, (self.file, "forward", 3)) if self.inside else path
            if self.beside is not None:
                self.dropped.called(self.beside, given, path)
        self.dropped.called(model, given, path)

    def stepping(self, optimizer):
        self.dropped.stepping(optimizer, {self.way: 1.0, op_times.program_path(sys._getframe(1)): 5.0})


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "made.py"
    path.write_text(PROGRAM)
    space = {}
    exec(compile(PROGRAM, path, "exec"), space)
    told = Told()
    told.file = str(path)
    maker, judge = space["Maker"](), space["Judge"]()
    of = {"maker": torch.optim.SGD(maker.parameters()), "judge": torch.optim.SGD(judge.parameters())}
    return space, told, maker, judge, of


def test_what_is_dropped_is_told_with_the_line_on_the_way_there(program):
    space, told, maker, judge, of = program
    for _ in range(3):
        space["judge_step"](told, maker, judge, of["judge"])
    assert told.dropped.facts() is None  # they may still be used
    space["maker_step"](told, maker, judge, of["maker"])
    facts = told.dropped.facts()
    assert (facts["model"], facts["seconds"], facts["never"]) == ("Maker", 3, False)
    assert facts["path"][-1][1] == "judge_step"
    assert "called(maker" in PROGRAM.splitlines()[facts["path"][-1][2] - 1]


def test_what_no_optimizer_ever_steps_for_is_told(program):
    space, told, maker, judge, of = program
    for _ in range(4):
        space["judge_step"](told, maker, judge, of["judge"])
    facts = told.dropped.facts()
    assert (facts["model"], facts["seconds"], facts["never"]) == ("Maker", 4, True)


def test_what_its_own_optimizer_adds_to_is_used(program):
    space, told, maker, judge, of = program
    space["judge_step"](told, maker, judge, of["judge"])
    of["maker"].zero_grad = lambda: None
    space["maker_step"](told, maker, judge, of["maker"])
    assert told.dropped.facts() is None


def test_a_model_that_backward_goes_through_is_needed(program):
    space, told, maker, judge, of = program
    space["maker_step"](told, maker, judge, of["maker"])  # leaves gradients of the judge
    told.of_model = "Judge"
    space["judge_step"](told, maker, judge, of["judge"])
    space["maker_step"](told, maker, judge, of["maker"])
    assert told.dropped.facts() is None


def test_models_live_and_die_as_without_it(program):
    space, told, maker, judge, of = program
    del program, maker
    of.pop("maker")
    space["judge_step"](told, space["Maker"](), judge, of["judge"])
    space["judge_step"](told, space["Maker"](), judge, of["judge"])
    assert told.dropped.facts() is None


@pytest.mark.parametrize("alone", [True, False])
def test_a_model_whose_forward_is_not_the_programs_is_known_by_the_line_that_calls_it_alone(program, alone):
    space, told, _, judge, of = program
    maker = torch.nn.Sequential(torch.nn.Linear(2, 3))
    told.of_model, told.inside = "Sequential", False
    told.beside = None if alone else judge
    for _ in range(4):
        space["judge_step"](told, maker, judge, of["judge"])
    facts = told.dropped.facts()
    assert (facts and facts["model"]) == ("Sequential" if alone else None)

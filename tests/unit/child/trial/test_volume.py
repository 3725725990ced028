"""How much each operator takes in each quarter of the steps, in a real process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.child.trial.volume import counted_steps
from unstall.prove.lines.calls import rising
from unstall.prove.lines.volume import accumulating, counted_in

from .test_account import run_under

PROGRAM = """
    import torch
    from torch import nn

    model = nn.Linear(64, 1)
    optimizer = torch.optim.SGD(model.parameters())
    seen, steady = torch.zeros(1), torch.zeros(400)

    def remember(loss):
        global seen
        seen = torch.cat([seen, loss.detach().view(1)])
        return seen.argmax(), seen[-1] + seen[torch.tensor([0])], seen[1:].view(-1)

    for step in range(40):
        loss = model(torch.ones(1, 64)).sum()
        loss.backward()
        optimizer.step()
        remember(loss)
        steady.argmax()
"""


@pytest.mark.timeout(240)
def test_an_operator_that_takes_all_that_was_seen_takes_more_and_more(tmp_path):
    _, folder = run_under({"volume": {"steps": 40}}, PROGRAM, tmp_path)
    volume = counted_in(folder / "volume.json")
    more = {call.operator: (call.function, call.line) for call, _ in rising(volume)}
    assert more == {"cat": ("remember", 11), "argmax": ("remember", 12)}
    assert {"addmm", "argmax"} <= {call.operator for call in volume}


def test_as_many_steps_are_counted_in_the_middle_of_each_quarter():
    assert counted_steps(16) == {1: 0, 2: 0, 5: 1, 6: 1, 9: 2, 10: 2, 13: 3, 14: 3}
    assert counted_steps(15) == {}


@given(st.integers(16, 10**6))
def test_counted_steps_are_few_and_within_the_run(steps):
    counted = counted_steps(steps)
    assert max(counted) < steps and min(counted) > 0 and len(counted) <= 16
    assert len({list(counted.values()).count(quarter) for quarter in range(4)}) == 1


VALIDATING = """
    import torch
    from torch import nn

    model = nn.Linear(64, 1)
    optimizer = torch.optim.SGD(model.parameters())
    scores = []

    def validate():
        model.eval()
        with torch.no_grad():
            scores.append(model(torch.ones(8, 64)))
        torch.cat(scores).sum()
        model.train()

    for epoch in range(5):
        for step in range(4):
            model(torch.ones(1, 64)).sum().backward()
            optimizer.step()
        validate()
"""


@pytest.mark.timeout(240)
def test_what_validations_take_is_counted_in_each_of_them(tmp_path):
    _, folder = run_under({"volume": {"steps": 20}}, VALIDATING, tmp_path)
    validations = counted_in(folder / "validations.json")
    assert {call.operator: tuple(counts) for call, counts in validations.items() if call.function == "validate"} == {
        "cat": (8, 16, 24, 32),
        "sum": (8, 16, 24, 32),
    }
    assert {call.operator for call in accumulating(validations)} == {"cat", "sum"}

"""What a program does before its loop and between its steps: real programs, watched."""

from __future__ import annotations

from textwrap import dedent

import pytest

pytestmark = pytest.mark.serial  # of a run that shares its cores, imports may be the larger part

SET_UP = """
    import torch
    from torch import nn


    def windows(numbers, length):
        made = []
        for begin in range(len(numbers) - length):
            made.append(sum(number * number % 7 for number in numbers[begin : begin + length]))
        return made


    def main():
        torch.set_num_threads(1)
        rows = torch.tensor(windows(list(range(101_800)), 1800)).float().reshape(-1, 100)
        model = nn.Linear(100, 32)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
        for step in range(400):
            loss = model(rows).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


    main()
"""

RARE = """
    import torch
    from torch import nn


    def is_known(value, known):
        return any(value == other for other in known)


    def evaluate(model, rows):
        seen = []
        with torch.no_grad():
            for row in rows.split(8):
                for value in model(row).sum(1).tolist():
                    if not is_known(value, seen):
                        seen.append(value)
        return len(seen)


    def main():
        torch.set_num_threads(1)
        rows = torch.randn(9600, 16)
        model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(4):
            for step in range(800):
                loss = model(rows[:32]).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(evaluate(model, rows))


    main()
"""


def verdict_of(workspace, program):
    workspace.write("train.py", dedent(program))
    watched = workspace.watched("train.py")
    assert watched.status == 0, watched.err
    return watched.report["verdict"], watched.report


def test_a_function_that_takes_most_of_a_run_before_its_first_step_is_the_verdict(workspace):
    verdict, report = verdict_of(workspace, SET_UP)
    assert (verdict["pattern"], verdict["cause"], verdict["culprit"]["function"]) == (
        "startup-bound",
        "set-up",
        "windows",
    )
    assert verdict["headroom"] == 1 and verdict["share"] > 0.33 and verdict.get("ceiling") is None
    assert report["startup"]["set_up"]["function"] == "windows"


def test_an_evaluation_that_comes_seldom_is_looked_into(workspace):
    verdict, _ = verdict_of(workspace, RARE)
    assert (verdict["pattern"], verdict["cause"]) == ("callback-bound", "validation")
    assert verdict["culprit"]["function"] in ("is_known", "is_known.<locals>.<genexpr>")
    assert [caller["function"] for caller in verdict["culprit"]["callers"]][:1] == ["evaluate"]

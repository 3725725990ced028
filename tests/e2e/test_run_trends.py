"""A step that grows, and evaluation between epochs: real programs, watched."""

from textwrap import dedent

import pytest

pytestmark = pytest.mark.serial  # growth is growth of time: beside other tests it is not to be seen

SEARCH = """
    import torch
    from torch import nn


    def is_new(value, seen):
        return all(value != other for other in seen)


    def main():
        torch.set_num_threads(1)
        model = nn.Sequential(nn.Linear(32, 1024), nn.ReLU(), nn.Linear(1024, 32))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        seen = []
        for step in range(1200):
            x = torch.randn(16, 32)
            for number in range(16):
                value = 16 * step + number
                if is_new(value, seen):
                    seen.append(value)
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


    main()
"""

EVALUATION = """
    import torch
    from torch import nn


    def evaluate(model, batches):
        with torch.no_grad():
            return sum(float(model(x).square().mean()) for x in batches)


    def main():
        torch.set_num_threads(1)
        model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        batches = [torch.randn(64, 256) for _ in range(200)]
        for epoch in range(80):
            for x in batches[:20]:
                loss = model(x).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            evaluate(model, batches)


    main()
"""


def test_a_list_that_is_searched_in_every_step_slows_it_down(workspace):
    workspace.write("program.py", SEARCH)
    result = workspace.watched("program.py")
    verdict = result.report["verdict"]
    assert (verdict["pattern"], verdict["culprit"]["function"]) == ("slows-down", "is_new")
    assert "longer every 1,000 steps" in verdict["summary"]
    assert "seen (list) grows with it" in " ".join(verdict["evidence"])


def test_evaluation_between_epochs_is_no_part_of_the_step(workspace):
    file = workspace.write("program.py", EVALUATION)
    result = workspace.watched("program.py")  # evaluations that overlap a window of stack sampling count as well
    between, step = (result.report["throughput"][name] for name in ("between", "step_s"))
    line = dedent(EVALUATION).splitlines().index("        return sum(float(model(x).square().mean()) for x in batches)")
    assert (between["function"], between["file"], between["line"]) == ("evaluate", str(file), line)
    assert 4 <= between["count"] <= 80
    assert between["mean_s"] < step["mean"]
    assert "between steps: evaluate, program.py" in result.err

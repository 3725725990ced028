"""Three tiny programs, each slow in one way that a glance tells: the verdict names the line."""

import pytest
from programs import SLOW_DATASET

GENERATOR = """
    import time

    import torch
    from torch import nn


    def read_record(number):
        time.sleep(0.015)
        return torch.full((4, 8), float(number % 7))


    def batches():
        for number in range(160):
            yield read_record(number)


    torch.set_num_threads(1)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for batch in batches():
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

CHECKPOINTS = """
    import torch
    from torch import nn


    def save_checkpoint(model, optimizer):
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")


    torch.set_num_threads(1)
    model = nn.Embedding(20_000, 64)
    optimizer = torch.optim.SparseAdam(model.parameters())
    model.register_buffer("history", torch.zeros(3_000_000))
    sparse = nn.functional.embedding
    for step in range(150):
        rows = torch.randint(20_000, (8,))
        loss = sparse(rows, model.weight, sparse=True).square().sum() + 0 * model(rows[:1]).sum().detach()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        save_checkpoint(model, optimizer)
"""

CASES = {
    "a slow dataset": (SLOW_DATASET, "input-bound", "Slow.__getitem__"),
    "a plain generator": (GENERATOR, "input-bound", "read_record"),
    "a checkpoint each step": (CHECKPOINTS, "callback-bound", "save_checkpoint"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_verdict_names_the_function(workspace, name):
    source, pattern, function = CASES[name]
    workspace.write("program.py", source)
    result = workspace.watched("program.py")
    assert result.status == 0
    assert result.steps >= 1
    verdict = result.report["verdict"]
    assert verdict == result.report["findings"][0]
    assert verdict["culprit"]["function"] == function
    assert verdict["culprit"]["file"] == str(workspace.folder / "program.py")
    assert verdict["pattern"] == pattern
    assert function in result.err
    assert f"program.py:{verdict['culprit']['line']}" in result.err

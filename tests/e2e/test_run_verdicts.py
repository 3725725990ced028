"""Three tiny programs, each slow in one way that a glance tells: the verdict names the line.

Whether that lies in the working directory or in an installed package, which a driver of two lines calls, is the same.
"""

import re

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
FURTHER = ("a plain generator", "a checkpoint each step")


DRIVER = """
    import runpy

    runpy.run_module("planted.program", run_name="__main__")  # go
"""


def check(result, name, file):
    _, pattern, function = CASES[name]
    assert result.status == 0
    assert result.steps >= 1
    verdict = result.report["verdict"]
    assert verdict == result.report["findings"][0]
    assert verdict["culprit"]["function"] == function
    assert verdict["culprit"]["file"] == str(file)
    assert verdict["pattern"] == pattern
    assert function in result.err
    assert f"program.py:{verdict['culprit']['line']}" in result.err
    return verdict


@pytest.mark.parametrize("name", CASES)
def test_the_verdict_names_the_function(workspace, name):
    file = workspace.write("program.py", CASES[name][0])
    verdict = check(workspace.watched("program.py"), name, file)
    assert "package" not in verdict["culprit"]
    assert "called_by" not in verdict["culprit"]


@pytest.mark.parametrize("name", ["a slow dataset", *(pytest.param(name, marks=pytest.mark.long) for name in FURTHER)])
def test_the_verdict_names_the_function_of_an_installed_package(workspace, name):
    packages = workspace.beside / "env" / "site-packages"
    file = workspace.write(packages / "planted" / "program.py", CASES[name][0])
    workspace.write(
        packages / "planted-1.2.1.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: planted\nVersion: 1.2.1\n"
    )
    workspace.write(packages / "planted-1.2.1.dist-info" / "RECORD", "planted/program.py,,\n")
    driver = workspace.write("driver.py", DRIVER)
    result = workspace.watched("driver.py", env={"PYTHONPATH": str(packages)})
    verdict = check(result, name, file)
    assert (verdict["culprit"]["package"], verdict["culprit"]["version"]) == ("planted", "1.2.1")
    assert verdict["culprit"]["called_by"] == {"function": "<module>", "file": str(driver), "line": 3}
    assert "planted 1.2.1" in verdict["advice"][-1]
    assert re.search(r"called by [^•]*your\s+driver.py:3", result.err)
    assert "(planted 1.2.1)" in result.err


IN_A_THREAD = """
    import threading

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset


    class Rows(Dataset):
        def __len__(self):
            return 12000

        def __getitem__(self, index):
            return torch.tensor(self.smoothed(index))

        def smoothed(self, index):
            values = [float((index * 7 + n) % 13) for n in range(8000)]
            return [sum(values[n : n + 250]) / 250 for n in range(0, 8000, 250)]


    def train():
        torch.set_num_threads(1)
        model = nn.Linear(32, 32)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for x in DataLoader(Rows(), batch_size=16):
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


    threading.Thread(target=train).start()
"""


def test_a_program_that_trains_in_a_thread_of_its_own(workspace):
    """As the workers of Ray Train do."""
    workspace.write("program.py", IN_A_THREAD)
    verdict = workspace.watched("program.py").report["verdict"]
    assert (verdict["pattern"], verdict["culprit"]["function"]) == ("input-bound", "Rows.smoothed")
    assert [caller["function"] for caller in verdict["culprit"]["callers"]] == ["Rows.__getitem__"]


RANKED = """
    import torch
    from torch import nn


    def rank(scores):
        return scores.flatten().sort().indices


    torch.set_num_threads(1)
    model = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scores = torch.randn(700_000)
    for step in range(100):
        loss = model(torch.randn(16, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hardest = rank(scores + step)[-16:]
"""


def test_a_large_operator_of_the_loops_own_is_no_python_code(workspace):
    workspace.write("program.py", RANKED)
    verdict = workspace.watched("program.py").report["verdict"]
    assert (verdict["pattern"], verdict["cause"]) == ("host-bound", "operators")
    assert verdict["culprit"]["function"] == "rank"
    assert "sort most" in verdict["evidence"][0]


REPLAY = """
    import numpy as np
    import torch
    from torch import nn


    class Replay:
        def __init__(self, capacity, width):
            self.rows, self.size = np.empty((capacity, width), np.float32), 0

        def add(self, row):
            self.rows[self.size] = row
            self.size += 1


    torch.set_num_threads(1)
    replay, model = Replay(2_000, 1 << 15), nn.Linear(1024, 1024)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for step in range(2_000):
        replay.add(float(step))
        loss = model(torch.from_numpy(replay.rows[step]).view(32, 1024) / 2_000).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.serial  # few readings of memory are taken of a step that other tests draw out
def test_a_buffer_that_is_allocated_whole_and_filled_is_no_leak(workspace):
    workspace.write("train.py", REPLAY)
    report = workspace.watched("train.py").report
    assert report["utilization"]["rss_growth_bytes_per_step"] > 5e4
    assert all(finding["pattern"] != "memory-growth" for finding in report["findings"])
    assert any("within what was allocated or mapped before" in note for note in report["run"]["notes"])

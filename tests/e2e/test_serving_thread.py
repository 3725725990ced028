"""A program that calls its model in a thread of its own, as servers do: it is looked at there."""

from __future__ import annotations

import pytest

PROGRAM = """
    import queue
    import threading

    import torch
    from torch import nn


    class Scorer(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([nn.Linear(64, 64) for _ in range(12)])

        def forward(self, x):
            for block in self.blocks:
                x = torch.relu(block(x))
            return x.sum(-1)


    def answer(model, waiting, answers):
        with torch.inference_mode():
            while (request := waiting.get()) is not None:
                answers.put(model(request).item())


    torch.manual_seed(0)
    waiting, answers = queue.Queue(), queue.Queue()
    thread = threading.Thread(target=answer, args=(Scorer().eval(), waiting, answers))
    thread.start()
    total = 0.0
    for number in range(400):
        waiting.put(torch.full((1, 64), number / 400))
        total += answers.get()
    waiting.put(None)
    thread.join()
    print(f"{total:.6f}")
"""


@pytest.mark.slow
def test_a_model_that_a_thread_calls_is_looked_at(workspace):
    workspace.write("program.py", PROGRAM)
    plain, watched = workspace.both("program.py")
    assert plain.status == watched.status == 0
    report = watched.report
    assert report["run"]["steps"] > 10
    assert report["throughput"]["flops_coverage"] == 1
    per_step = report["throughput"]["flops_per_s"] * report["throughput"]["step_s"]["mean"]
    assert per_step == pytest.approx(12 * 2 * 64 * 64, rel=0.01)

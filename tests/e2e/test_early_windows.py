"""A program that calls its model many times before it trains: its training is looked at as well."""

from __future__ import annotations

import pytest

PROGRAM = """
    import torch
    from torch import nn


    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(32, 64)
            self.head = nn.Linear(64, 4)

        def forward(self, x):
            return self.head(torch.relu(self.body(x)))


    torch.manual_seed(0)
    agent = Agent()
    optimizer = torch.optim.SGD(agent.parameters(), lr=0.01)
    for update in range(60):
        played = []
        with torch.no_grad():
            for _ in range(16):
                seen = torch.rand(2, 32)
                agent(seen)
                played.append(seen)
        for _ in range(4):
            loss = agent(torch.cat(played)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"{loss.item():.6f}")
"""
FORWARD = 2 * (32 * 64 + 64 * 4)
"""FLOPs of the model for a sample."""
BACKWARD = 2 * FORWARD - 2 * 32 * 64
"""Of its gradients: nobody asks for those of the inputs."""


@pytest.mark.slow
def test_the_training_after_the_first_rollouts_is_looked_at(workspace):
    workspace.write("program.py", PROGRAM)
    plain, watched = workspace.both("program.py")
    assert plain.status == watched.status == 0
    throughput = watched.report["throughput"]
    per_step = throughput["flops_per_s"] * throughput["step_s"]["mean"]
    assert throughput["flops_coverage"] == 1
    assert per_step == pytest.approx(32 * (FORWARD + BACKWARD) + 4 * 2 * FORWARD, rel=0.15)


DISTILLATION = """
    import torch
    from torch import nn


    def make(width):
        return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))


    def fit(model, steps, loss_of):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(steps):
            optimizer.zero_grad()
            loss_of(torch.randn(64, 64)).backward()
            optimizer.step()


    class Distiller(nn.Module):
        def __init__(self, teacher, student):
            super().__init__()
            self.teacher, self.student = teacher.eval(), student

        def loss(self, x):
            with torch.no_grad():
                wanted = self.teacher(x)
            return (self.student(x) - wanted).square().mean()


    torch.manual_seed(0)
    teacher, student = make(4096), make(16)
    fit(teacher, 40, lambda x: teacher(x).square().mean())
    teacher.requires_grad_(False)
    fit(student, 1500, Distiller(teacher, student).loss)
"""


@pytest.mark.slow
def test_of_a_teacher_and_its_student_the_longer_training_is_looked_at(workspace):
    workspace.write("program.py", DISTILLATION)
    report = workspace.watched("program.py").report
    verdict = report["verdict"]
    assert (verdict["pattern"], verdict["cause"]) == ("recompute-bound", "frozen-part")
    assert verdict["culprit"]["function"] == "Distiller.loss"
    throughput = report["throughput"]
    teacher, student = (2 * 64 * (64 * width + width * 10) for width in (4096, 16))
    backward = 2 * student - 2 * 64 * 64 * 16  # nobody asks for the gradients of the inputs
    per_step = throughput["flops_per_s"] * throughput["step_s"]["mean"]
    assert per_step == pytest.approx(teacher + student + backward, rel=0.05)

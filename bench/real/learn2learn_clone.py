"""Meta-learn sinusoids with learn2learn's MAML, as Finn et al. do: a small network, a clone of it for each task."""

import sys
import time
from types import ModuleType

import torch
from stand_in import stand_in
from torch import nn

stand_in("gym", "torchvision")
for name in ("data", "gym", "text", "vision"):  # compiled, or for other uses
    sys.modules[f"learn2learn.{name}"] = ModuleType(f"learn2learn.{name}")

from learn2learn.algorithms import MAML  # noqa: E402

torch.manual_seed(0)
STEPS, TASKS, SHOTS = 400, 25, 10


def task():
    """(inputs and targets to adapt to, inputs and targets to judge by)."""
    amplitude, phase = 0.1 + 4.9 * torch.rand(1), 3.14 * torch.rand(1)
    inputs = 10 * torch.rand(2 * SHOTS, 1) - 5
    targets = amplitude * torch.sin(inputs - phase)
    return inputs[:SHOTS], targets[:SHOTS], inputs[SHOTS:], targets[SHOTS:]


network = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))
maml = MAML(network, lr=0.01)
optimizer = torch.optim.Adam(maml.parameters(), lr=1e-3)
squares = nn.MSELoss()

began = time.perf_counter()
for step in range(STEPS):
    optimizer.zero_grad()
    total = 0.0
    for _ in range(TASKS):
        learner = maml.clone()
        inputs, targets, other_inputs, other_targets = task()
        learner.adapt(squares(learner(inputs), targets))
        loss = squares(learner(other_inputs), other_targets) / TASKS
        loss.backward()
        total += loss.item()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: loss {total:.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")

"""The programs that several end-to-end tests run."""

# Without torch.optim, which imports the compiler: that takes longer than all the rest.
TINY = '''
"""A small model, trained: the program goes through the steps and does in between what it is there for."""

import time

import torch
from torch import nn


def training(steps, pause=0.005):
    """Yield (step, loss) after each step; ``pause``: seconds of sleep in it."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    for step in range(steps):
        x = torch.randn(16, 8)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.05 * parameter.grad
        time.sleep(pause)
        yield step, loss.item()
'''

SLOW_DATASET = '''
"""A dataset whose items take their time, with as many workers as asked for, started as asked for."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return self.items

    def __getitem__(self, index):
        time.sleep(0.008)
        return torch.randn(8, generator=torch.Generator().manual_seed(index)), index % 2


def main(workers=0, context=None, items=600):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Slow(items), batch_size=4, num_workers=workers, multiprocessing_context=context)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item().hex())


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 0, *sys.argv[2:])
'''

READINGS = """
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Readings(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        time.sleep(0.02)  # a slow line
        return torch.tensor([float((index * k) % 7) for k in range(8)]), index % 2


torch.manual_seed(0)
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(400):
    for x, y in DataLoader(Readings(), batch_size=4, shuffle=True):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
"""Trains on what a loader without workers waits for."""

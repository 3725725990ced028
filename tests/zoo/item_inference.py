"""Scores every row of a table with a trained network. Planted: one row at a time; the fixed twin
scores batches of 64. A step of the clock is a row."""

import numpy as np
import torch
from common import Clock, parse_args
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.linear(self.norm(x)))


class RiskModel(nn.Module):
    def __init__(self, features=40, width=64, depth=10):
        super().__init__()
        self.entry = nn.Linear(features, width)
        self.blocks = nn.Sequential(*[Residual(width) for _ in range(depth)])
        self.exit = nn.Linear(width, 2)

    def forward(self, rows):
        return self.exit(self.blocks(self.entry(rows))).softmax(-1)


def score(model, rows):
    return model(torch.from_numpy(rows))[:, 1]


def main():
    args = parse_args()
    table = np.random.default_rng(0).normal(size=(60_000, 40)).astype(np.float32)
    model = RiskModel().eval()
    size = 1 if args.variant == "slow" else 64
    clock = Clock(args.seconds)
    flagged = 0
    with torch.inference_mode():
        while not clock.done:
            for start in range(0, len(table), size):
                risk = score(model, table[start : start + size])
                flagged += int((risk > 0.5).sum())
                clock.tick(size)
                if clock.done:
                    break
    print("flagged", flagged)
    clock.report()


if __name__ == "__main__":
    main()

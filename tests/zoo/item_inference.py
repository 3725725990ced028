"""Scores every row of a table with a trained network. Planted: one row at a time; the fixed twin
scores batches of 64. A step of the clock is a row."""

import numpy as np
import torch
from common import Clock, parse_args
from torch import nn


class RiskModel(nn.Module):
    def __init__(self, features=40):
        super().__init__()
        self.norm = nn.BatchNorm1d(features)
        self.body = nn.Sequential(
            nn.Linear(features, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 48),
            nn.ReLU(), nn.Linear(48, 2),
        )  # fmt: skip

    def forward(self, rows):
        return self.body(self.norm(rows)).softmax(-1)


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

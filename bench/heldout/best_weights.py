"""Training that keeps its best weights. Planted: they are written anew, compressed, whenever the smoothed loss falls,
which is nearly always; the fixed twin copies them in memory, and writes them at the end.
"""

import pathlib
import tempfile

import numpy as np
import torch
from common import Clock, parse_args
from torch import nn


class Best:
    def __init__(self, folder):
        self.file = pathlib.Path(folder) / "best.npz"
        self.loss = self.smoothed = None

    def consider(self, model, loss):
        self.smoothed = loss if self.smoothed is None else 0.98 * self.smoothed + 0.02 * loss
        if self.loss is None or self.smoothed < self.loss:
            self.loss = self.smoothed
            self.keep({name: value.detach().numpy() for name, value in model.named_parameters()})

    def keep(self, weights):
        np.savez_compressed(self.file, **weights)


class BestInMemory(Best):
    def keep(self, weights):
        self.weights = {name: value.copy() for name, value in weights.items()}


class NoBest(Best):
    def keep(self, weights):
        pass


def main():
    args = parse_args()
    generator = torch.Generator().manual_seed(11)
    waves = torch.randn(2048, 96, generator=generator).cumsum(1) / 8
    model = nn.Sequential(nn.Linear(64, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 32))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
    clock = Clock(args.seconds)
    with tempfile.TemporaryDirectory() as folder:
        best = {"slow": Best, "fast": BestInMemory, "free": NoBest}[args.variant](folder)
        while not clock.done:
            rows = torch.randint(0, len(waves), (512,), generator=generator)
            loss = nn.functional.smooth_l1_loss(model(waves[rows, :64]), waves[rows, 64:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            best.consider(model, loss.item())
            clock.tick()
    clock.report()


if __name__ == "__main__":
    main()

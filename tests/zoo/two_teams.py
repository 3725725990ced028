"""A sensor model. Planted: NumPy mixes each batch with as many threads as there are cores, and so does torch, each with its
own; the cure leaves NumPy's BLAS one."""

import os

import numpy as np
import torch
from common import Clock, parse_args
from threadpoolctl import threadpool_limits
from torch import nn


class Sensors:
    def __init__(self):
        self.draw = np.random.default_rng(0)
        self.readings = self.draw.standard_normal((4096, 512))
        self.mixing = self.draw.standard_normal((512, 512))

    def mixed(self):
        rows = self.readings[self.draw.integers(0, len(self.readings), 64)]
        return torch.from_numpy((rows @ self.mixing).astype(np.float32))


def train(args):
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 64))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    sensors = Sensors()
    clock = Clock(args.seconds)
    while not clock.done:
        loss = model(sensors.mixed()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
    clock.report()


if __name__ == "__main__":
    args = parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    if args.variant == "fast":
        threadpool_limits(1, "blas")
    train(args)

"""Shapes as clouds of points. Planted: the points that a model sees are chosen far apart, one after the other, of every
cloud each time; the fixed twin chooses them once.
"""

import numpy as np
import torch
from common import Clock, parse_args
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEEN = 48


class Clouds(Dataset):
    def __init__(self, count=192):
        rng = np.random.default_rng(14)
        self.kinds = rng.integers(0, 4, count)
        directions = rng.standard_normal((count, 600, 3))
        spheres = directions / np.linalg.norm(directions, axis=2, keepdims=True)
        self.clouds = (spheres * (1 + self.kinds[:, None, None] * [0.0, 0.4, 0.8])).astype(np.float32)

    def __len__(self):
        return len(self.clouds)

    def chosen(self, index):
        cloud = self.clouds[index]
        kept = [0]
        nearest = np.full(len(cloud), np.inf, dtype=np.float32)
        for _ in range(SEEN - 1):
            nearest = np.minimum(nearest, np.square(cloud - cloud[kept[-1]]).sum(axis=1))
            kept.append(int(nearest.argmax()))
        return cloud[kept]

    def __getitem__(self, index):
        return torch.from_numpy(self.chosen(index)), int(self.kinds[index])


class Prepared(Clouds):
    def __init__(self):
        super().__init__()
        self.kept = [super(Prepared, self).chosen(index) for index in range(len(self))]

    def chosen(self, index):
        return self.kept[index]


class First(Clouds):
    def chosen(self, index):
        return self.clouds[index, :SEEN]


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.each = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU())
        self.head = nn.Linear(128, 4)

    def forward(self, points):
        return self.head(self.each(points).amax(1))


def main():
    args = parse_args()
    dataset = {"slow": Clouds, "fast": Prepared, "free": First}[args.variant]()
    loader = DataLoader(dataset, batch_size=24, shuffle=True)
    model = PointNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    while not clock.done:
        for points, kinds in loader:
            loss = nn.functional.cross_entropy(model(points), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                break
    clock.report()


if __name__ == "__main__":
    main()

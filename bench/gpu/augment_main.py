"""Trains a convolutional network on pictures. Planted: the loader augments them in the main process; the fixed twin has
eight workers that stay, and pins."""

import numpy as np
import torch
from common import Clock, parse_args
from torch import nn
from torch.utils.data import DataLoader, Dataset

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Augmented(Dataset):
    def __init__(self, count=4096):
        self.pictures = np.random.default_rng(0).integers(0, 256, (256, 96, 96, 3), dtype=np.uint8)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        picture = self.pictures[index % len(self.pictures)].astype(np.float32) / 255
        picture = picture ** rng.uniform(0.7, 1.4)
        picture = picture + rng.normal(0, 0.05, picture.shape).astype(np.float32)
        if rng.random() < 0.5:
            picture = picture[:, ::-1]
        return torch.from_numpy(np.ascontiguousarray(picture.transpose(2, 0, 1))).float(), index % 10


def main():
    args = parse_args()
    torch.manual_seed(0)
    more = {"num_workers": 8, "persistent_workers": True, "pin_memory": True} if args.variant != "slow" else {}
    loader = DataLoader(Augmented(), batch_size=64, shuffle=True, **more)
    width = 64
    model = nn.Sequential(
        *(nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU()),
        *(nn.Conv2d(2 * width, 4 * width, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        nn.Linear(4 * width, 10),
    ).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    clock = Clock(args.seconds)
    while not clock.done:
        for pictures, labels in loader:
            pictures = pictures.to(DEVICE, non_blocking=True)
            loss = nn.functional.cross_entropy(model(pictures), labels.to(DEVICE, non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                break
    clock.report()


if __name__ == "__main__":
    main()

"""Failing pumps from windows of their sensors, all in memory. Planted: windows are cut and collated one by one; the
fixed twin cuts a whole batch with one index."""

import numpy as np
import torch
from common import Clock, parse_args
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

SENSORS, WINDOW = 8, 24


class PumpWindows(Dataset):
    def __init__(self, hours=60_000):
        rng = np.random.default_rng(5)
        drift = rng.normal(size=(hours, SENSORS)).cumsum(0)
        self.readings = torch.from_numpy(drift).float()
        self.mean, self.scale = self.readings.mean(0), float(self.readings.std())
        self.failed = (np.abs(drift).max(1) > np.abs(drift).max() / 2).astype(np.int64)

    def __len__(self):
        return len(self.readings) - WINDOW

    def __getitem__(self, index):
        window = (self.readings[index : index + WINDOW] - self.mean) / self.scale
        return {"window": window, "failed": self.failed[index + WINDOW]}


class WholeBatches(PumpWindows):
    def __getitems__(self, indices):
        starts = torch.as_tensor(indices)
        windows = self.readings[starts[:, None] + torch.arange(WINDOW)]
        return {
            "window": (windows - self.mean) / self.scale,
            "failed": torch.from_numpy(self.failed[(starts + WINDOW).numpy()]),
        }


def train_epoch(model, loader, optimizer, clock):
    for batch in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch["window"]), batch["failed"])
        loss.backward()
        optimizer.step()
        clock.tick()
        if clock.done:
            break


def main():
    args = parse_args()
    torch.manual_seed(0)
    if args.variant == "slow":
        train, _ = random_split(PumpWindows(), [0.9, 0.1])
        loader = DataLoader(train, batch_size=256, shuffle=True)
    else:
        train, _ = random_split(WholeBatches(), [0.9, 0.1])
        loader = DataLoader(train, batch_size=256, shuffle=True, collate_fn=lambda batch: batch)
    model = nn.Sequential(nn.Flatten(), nn.Linear(WINDOW * SENSORS, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    clock = Clock(args.seconds)
    while not clock.done:
        train_epoch(model, loader, optimizer, clock)
    clock.report()


if __name__ == "__main__":
    main()

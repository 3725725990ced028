"""What a person does, from a sensor on the wrist. Planted: spikes are taken out of each recording by a median window
after window, in the loader's worker; the fixed twin filters a recording at once.
"""

import numpy as np
import torch
from common import Clock, parse_args
from scipy.ndimage import median_filter
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

AXES, TICKS, KINDS, WINDOW = 3, 100, 5, 7


def record(rng, kind):
    """Seconds of acceleration along the axes, with the spikes of a loose contact."""
    time = np.arange(TICKS) / 50
    pace = 0.6 + 0.5 * kind + rng.normal(scale=0.05)
    phases = rng.uniform(0, 2 * np.pi, (AXES, 1))
    motion = np.sin(2 * np.pi * pace * time + phases) + rng.normal(scale=0.2, size=(AXES, TICKS))
    spikes = (rng.random((AXES, TICKS)) < 0.02) * rng.normal(scale=8, size=(AXES, TICKS))
    return (motion + spikes).astype(np.float32)


class Recordings(Dataset):
    def __init__(self, count=600):
        rng = np.random.default_rng(12)
        self.kinds = rng.integers(0, KINDS, count)
        self.signals = np.stack([record(rng, kind) for kind in self.kinds])

    def __len__(self):
        return len(self.signals)

    def despike(self, index):
        signal = self.signals[index]
        padded = np.pad(signal, ((0, 0), (WINDOW // 2, WINDOW // 2)), mode="symmetric")
        clean = np.empty_like(signal)
        for axis in range(AXES):
            for tick in range(TICKS):
                clean[axis, tick] = np.median(padded[axis, tick : tick + WINDOW])
        return clean

    def __getitem__(self, index):
        signal = self.despike(index)
        signal = (signal - signal.mean(1, keepdims=True)) / (signal.std(1, keepdims=True) + 1e-3)
        return torch.from_numpy(signal), int(self.kinds[index])


class FilteredRecordings(Recordings):
    def despike(self, index):
        return median_filter(self.signals[index], size=(1, WINDOW), mode="reflect")


class KeptRecordings(Recordings):
    def __init__(self):
        super().__init__()
        self.clean = median_filter(self.signals, size=(1, 1, WINDOW), mode="reflect")

    def despike(self, index):
        return self.clean[index]


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv1d(inputs, outputs, 5, stride=2, padding=2, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()
    )


class MotionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(block(AXES, 64), block(64, 96), block(96, 128))
        self.head = nn.Linear(128, KINDS)

    def forward(self, signals):
        return self.head(self.blocks(signals).mean(2))


def endless(loader):
    while True:
        yield from loader


def main():
    args = parse_args()
    torch.manual_seed(5)
    dataset = {"slow": Recordings, "fast": FilteredRecordings, "free": KeptRecordings}[args.variant]()
    sampler = RandomSampler(dataset, replacement=True, num_samples=16000)
    loader = DataLoader(dataset, batch_size=16, sampler=sampler, num_workers=1, persistent_workers=True)
    model = MotionNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=500)
    clock = Clock(args.seconds)
    for signals, kinds in endless(loader):
        loss = nn.functional.cross_entropy(model(signals), kinds, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        clock.tick()
        if clock.done:
            break
    clock.report()


if __name__ == "__main__":
    main()

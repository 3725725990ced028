"""Spoken digits, made of chirps. Planted: mel spectra are computed of every clip each time, in NumPy; the fixed twin
computes them once.
"""

import numpy as np
import torch
from common import Clock, parse_args
from torch import nn
from torch.utils.data import DataLoader, Dataset


def mel_filters(bands=40, bins=257, rate=16000):
    mels = np.linspace(0, 2595 * np.log10(1 + rate / 1400), bands + 2)
    edges = 700 * (10 ** (mels / 2595) - 1) / (rate / 2) * (bins - 1)
    grid = np.arange(bins)
    rising = (grid - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - grid) / (edges[2:] - edges[1:-1])[:, None]
    return np.clip(np.minimum(rising, falling), 0, None).astype(np.float32)


class Digits(Dataset):
    def __init__(self, count=256):
        rng = np.random.default_rng(3)
        time = np.arange(16000) / 16000
        self.labels = rng.integers(0, 10, count)
        pitch = 200 + 150 * self.labels[:, None]
        self.clips = np.sin(2 * np.pi * (pitch * time + 40 * time**2)) + 0.3 * rng.standard_normal((count, 16000))
        self.filters = mel_filters()

    def spectrum(self, clip):
        frames = np.lib.stride_tricks.sliding_window_view(clip, 512)[::80] * np.hanning(512)
        power = np.abs(np.fft.rfft(frames)) ** 2
        return np.log(power @ self.filters.T + 1e-6).astype(np.float32).T

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, index):
        return torch.from_numpy(self.spectrum(self.clips[index])), int(self.labels[index])


class Prepared(Digits):
    def __init__(self):
        super().__init__()
        self.spectra = [super(Prepared, self).__getitem__(index) for index in range(len(self))]

    def __getitem__(self, index):
        return self.spectra[index]


class FirstSpectrum(Digits):
    def __init__(self):
        super().__init__()
        self.first = super().spectrum(self.clips[0])

    def spectrum(self, clip):
        return self.first


def main():
    args = parse_args()
    dataset = {"slow": Digits, "fast": Prepared, "free": FirstSpectrum}[args.variant]()
    loader = DataLoader(dataset, batch_size=16, shuffle=True)
    model = nn.Sequential(
        nn.Conv1d(40, 64, 5, stride=2), nn.ReLU(), nn.Conv1d(64, 64, 5, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    while not clock.done:
        for spectra, labels in loader:
            loss = nn.functional.cross_entropy(model(spectra), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                break
    clock.report()


if __name__ == "__main__":
    main()

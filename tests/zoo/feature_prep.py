"""Keyword spotting on made-up sounds. Planted: zero crossings and frame energies computed by Python
loops between the loader and the model; the fixed twin uses array operations."""

import numpy as np
import torch
from common import Clock, parse_args
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FRAME = 80


def make_sounds(n=1024, length=1600):
    rng = np.random.default_rng(4)
    label = rng.integers(0, 5, n)
    t = np.arange(length) / 8000
    pitch = 200 * (label + 1) + rng.normal(0, 20, n)
    sounds = np.sin(2 * np.pi * pitch[:, None] * t) + rng.normal(0, 0.2, (n, length))
    return torch.from_numpy(sounds.astype(np.float32)), torch.from_numpy(label)


def frame_features(sounds):
    features = []
    for sound in sounds.tolist():
        row = []
        for start in range(0, len(sound), FRAME):
            crossings, energy, previous = 0, 0.0, 0.0
            for value in sound[start : start + FRAME]:
                energy += value * value
                if (value < 0) != (previous < 0):
                    crossings += 1
                previous = value
            row += [crossings / FRAME, energy / FRAME]
        features.append(row)
    return torch.tensor(features)


def frame_features_array(sounds):
    frames = sounds.view(len(sounds), -1, FRAME)
    crossings = ((frames[..., 1:] < 0) != (frames[..., :-1] < 0)).float().sum(-1) / FRAME
    return torch.stack([crossings, frames.square().mean(-1)], dim=-1).flatten(1)


class Spotter(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(40, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 256), nn.ReLU(),
            nn.Linear(256, 5),
        )  # fmt: skip

    def forward(self, features):
        return self.net(features)


def main():
    args = parse_args()
    features_of = frame_features if args.variant == "slow" else frame_features_array
    sounds, labels = make_sounds()
    loader = DataLoader(TensorDataset(sounds, labels), batch_size=32, shuffle=True)
    model = Spotter()
    optimizer = torch.optim.Adam(model.parameters())
    clock = Clock(args.seconds)
    accumulate = 2

    def epoch():
        for i, (batch, target) in enumerate(loader):
            features = features_of(batch)
            loss = nn.functional.cross_entropy(model(features), target) / accumulate
            loss.backward()
            if i % accumulate == accumulate - 1:
                optimizer.step()
                optimizer.zero_grad()
                clock.tick()
            if clock.done:
                break

    while not clock.done:
        epoch()
    clock.report()


if __name__ == "__main__":
    main()

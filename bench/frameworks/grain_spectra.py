"""Trains on audio that Grain loads. Planted: a map of the pipeline computes each spectrum term by term; the cure uses the
fast transform."""

import grain
import numpy as np
import torch
from planted import parse_args, rate
from torch import nn

LENGTH = 512
TERMS = np.arange(LENGTH)


class Recordings:
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return np.random.default_rng(index).normal(size=LENGTH)


def spectrum(sound):
    powers = []
    for frequency in range(LENGTH // 2):
        wave = np.exp(-2j * np.pi * frequency * TERMS / LENGTH)
        powers.append(abs((sound * wave).sum()))
    return np.log1p(np.array(powers, np.float32))


def fast_spectrum(sound):
    return np.log1p(np.abs(np.fft.rfft(sound))[:-1]).astype(np.float32)


def main():
    args = parse_args()
    torch.manual_seed(0)
    batches = (
        grain.MapDataset.source(Recordings(16 * args.steps))
        .seed(0)
        .shuffle()
        .map(spectrum if args.variant == "slow" else fast_spectrum)
        .batch(16)
        .to_iter_dataset(grain.ReadOptions(num_threads=0, prefetch_buffer_size=0))
    )
    model = nn.Sequential(nn.Linear(LENGTH // 2, 128), nn.ReLU(), nn.Linear(128, LENGTH // 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with rate(args.steps):
        for batch in batches:
            x = torch.from_numpy(batch)
            loss = (model(x) - x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("loss", round(loss.item(), 3))


if __name__ == "__main__":
    main()

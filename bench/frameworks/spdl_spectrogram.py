"""Trains on sound that an SPDL pipeline reads. Planted: the one stage computes each spectrogram window by window; the cure
takes one transform of all windows."""

import numpy as np
import torch
from planted import parse_args, rate
from spdl.pipeline import PipelineBuilder
from torch import nn

WINDOW, HOP = 256, 32


def spectrogram(index):
    sound = np.random.default_rng(index).standard_normal(16_000)
    taper = np.hanning(WINDOW)
    columns = []
    for begin in range(0, len(sound) - WINDOW, HOP):
        spectrum = np.fft.rfft(sound[begin : begin + WINDOW] * taper)
        columns.append(np.log1p(np.abs(spectrum)))
    return torch.tensor(np.stack(columns).mean(0), dtype=torch.float32)


def spectrogram_at_once(index):
    sound = np.random.default_rng(index).standard_normal(16_000)
    windows = np.lib.stride_tricks.sliding_window_view(sound, WINDOW)[:-1:HOP]
    spectrum = np.fft.rfft(windows * np.hanning(WINDOW))
    return torch.tensor(np.log1p(np.abs(spectrum)).mean(0), dtype=torch.float32)


def batches(stage, count):
    pipeline = PipelineBuilder().add_source(range(8 * count)).pipe(stage).aggregate(8).add_sink(4).build(num_threads=1)
    with pipeline.auto_stop():
        for items in pipeline:
            yield torch.stack(items)


def main():
    args = parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(129, 256), nn.ReLU(), nn.Linear(256, 129))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    stage = spectrogram if args.variant == "slow" else spectrogram_at_once
    with rate(args.steps):
        for x in batches(stage, args.steps):
            loss = (model(x) - x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("loss", loss.item())


if __name__ == "__main__":
    main()

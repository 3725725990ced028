"""Trains on batches of Ray Data. Planted: the function of map_batches counts pairs of letters one by one; the cure counts
whole arrays."""

import numpy as np
import ray
import torch
from planted import parse_args, rate
from torch import nn

LETTERS, LENGTH, BATCH = 26, 4000, 8


def texts(rows):
    starts = rows["id"][:, None] * 7919
    return (starts + np.arange(LENGTH) * (1 + starts % 25)) % LETTERS


def count_pairs(rows):
    counts = np.zeros((len(rows["id"]), LETTERS * LETTERS), np.float32)
    for row, text in zip(counts, texts(rows).tolist()):
        for first, second in zip(text, text[1:]):
            row[first * LETTERS + second] += 1
    return {"pairs": counts}


def count_arrays(rows):
    found = texts(rows)
    pairs = found[:, :-1] * LETTERS + found[:, 1:]
    return {"pairs": np.stack([np.bincount(row, minlength=LETTERS * LETTERS) for row in pairs]).astype(np.float32)}


def main():
    args = parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    count = count_pairs if args.variant == "slow" else count_arrays
    data = ray.data.range(args.steps * BATCH, override_num_blocks=args.steps).map_batches(count, batch_size=BATCH)
    model = nn.Sequential(nn.Linear(LETTERS * LETTERS, 256), nn.ReLU(), nn.Linear(256, LETTERS * LETTERS))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps = 0
    with rate(args.steps):
        for batch in data.iter_torch_batches(batch_size=BATCH):
            x = batch["pairs"] / LENGTH
            loss = (model(x) - x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    print("steps", steps, "parameters", sum(parameter.numel() for parameter in model.parameters()))


if __name__ == "__main__":
    main()

"""Trains on records that torchdata's nodes read. Planted: each record is parsed from JSON every time; the cure keeps arrays."""

import json

import numpy as np
import torch
from planted import parse_args, rate
from torch import nn
from torchdata.nodes import Batcher, IterableWrapper, Loader, ParallelMapper

RNG = np.random.default_rng(0)
ARRAYS = [RNG.random((4000,)).astype(np.float32) for _ in range(32)]
LINES = [json.dumps({"id": number, "values": array.tolist()}) for number, array in enumerate(ARRAYS)]


def parse(number):
    record = json.loads(LINES[number % len(LINES)])
    return torch.tensor(record["values"]).reshape(40, 100).mean(0)


def take(number):
    return torch.from_numpy(ARRAYS[number % len(ARRAYS)]).reshape(40, 100).mean(0)


def main():
    args = parse_args()
    torch.manual_seed(0)
    source = IterableWrapper(range(16 * args.steps))
    mapped = ParallelMapper(source, parse if args.variant == "slow" else take, num_workers=1, method="thread")
    loader = Loader(Batcher(mapped, batch_size=16))
    model = nn.Sequential(nn.Linear(100, 128), nn.ReLU(), nn.Linear(128, 100))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with rate(args.steps):
        for batch in loader:
            x = torch.stack(batch)
            loss = (model(x) - x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("loss", loss.item())


if __name__ == "__main__":
    main()

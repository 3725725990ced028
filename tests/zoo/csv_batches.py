"""House prices from CSV text. Planted: a hand-written batch loop that parses its lines each time; the
fixed twin keeps the parsed table."""

import csv
import random

import numpy as np
import torch
from common import Clock, cached, parse_args
from torch import nn

COLUMNS = 24


def write_csv(folder):
    rng = random.Random(11)
    with open(folder / "houses.csv", "w", newline="") as f:
        writer = csv.writer(f)
        writer.writerow([f"f{i}" for i in range(COLUMNS)] + ["price"])
        for _ in range(30_000):
            features = [round(rng.gauss(0, 1), 5) for _ in range(COLUMNS)]
            writer.writerow(features + [round(sum(features[:5]) + rng.gauss(0, 0.1), 5)])


def load_batch(lines, start, stop):
    features, prices = [], []
    for row in csv.reader(lines[start:stop]):
        values = [float(cell) if cell else 0.0 for cell in row]
        features.append(values[:-1])
        prices.append(values[-1:])
    return torch.tensor(features), torch.tensor(prices)


def evaluate(model, x, y):
    with torch.no_grad():
        return nn.functional.mse_loss(model(x), y).item()


if __name__ == "__main__":
    args = parse_args()
    batch_size = 256
    lines = (cached("houses", write_csv) / "houses.csv").read_text().splitlines()[1:]
    held_out = load_batch(lines, 0, 512)
    if args.variant == "fast":
        table = torch.from_numpy(np.loadtxt(lines, delimiter=",", dtype=np.float32))
    model = nn.Sequential(nn.Linear(COLUMNS, 128), nn.SiLU(), nn.Linear(128, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    epoch = 0
    while not clock.done:
        for i in range(512, len(lines), batch_size):
            if args.variant == "slow":
                x, y = load_batch(lines, i, i + batch_size)
            else:
                x, y = table[i : i + batch_size, :-1], table[i : i + batch_size, -1:]
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                break
        epoch += 1
        print(f"epoch {epoch}: held-out error {evaluate(model, *held_out):.4f}")
    clock.report()

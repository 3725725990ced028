"""Forecasts of electricity meters from a database. Planted: the table of readings has no index, so that each window
takes a look at every reading; the fixed twin's table is ordered by meter and hour.
"""

import sqlite3

import numpy as np
import torch
from common import Clock, cached, parse_args
from torch import nn

METERS, HOURS, PAST, AHEAD, BATCH = 80, 1200, 96, 12, 16


def consumption():
    rng = np.random.default_rng(17)
    hours = np.arange(HOURS)
    daily = np.sin(2 * np.pi * (hours / 24 + rng.random((METERS, 1))))
    weekly = np.sin(2 * np.pi * (hours / 168 + rng.random((METERS, 1))))
    return 2 + daily + 0.4 * weekly + 0.2 * rng.normal(size=(METERS, HOURS))


def fill(folder, columns):
    values = consumption()
    rows = ((meter, hour, float(values[meter, hour])) for hour in range(HOURS) for meter in range(METERS))
    connection = sqlite3.connect(folder / "meters.db")
    connection.execute(f"CREATE TABLE readings {columns}")
    connection.executemany("INSERT INTO readings VALUES (?, ?, ?)", rows)
    connection.commit()
    connection.close()


def build(folder):
    fill(folder, "(meter INTEGER, hour INTEGER, kilowatts REAL)")


def build_ordered(folder):
    fill(folder, "(meter INTEGER, hour INTEGER, kilowatts REAL, PRIMARY KEY (meter, hour)) WITHOUT ROWID")


class Readings:
    def __init__(self, folder):
        self.connection = sqlite3.connect(folder / "meters.db")

    def between(self, meter, start, stop):
        cursor = self.connection.execute(
            "SELECT kilowatts FROM readings WHERE meter = ? AND hour >= ? AND hour < ? ORDER BY hour",
            (meter, start, stop),
        )
        return np.array(cursor.fetchall(), np.float32)[:, 0]


class KeptReadings(Readings):
    def __init__(self, folder):
        super().__init__(folder)
        self.values = consumption().astype(np.float32)

    def between(self, meter, start, stop):
        return self.values[meter, start:stop]


def batches(readings, seed=6):
    """Windows of random meters and times: what was, and what came after."""
    rng = np.random.default_rng(seed)
    while True:
        windows = []
        for _ in range(BATCH):
            meter, start = rng.integers(METERS), rng.integers(HOURS - PAST - AHEAD)
            windows.append(readings.between(int(meter), int(start), int(start) + PAST + AHEAD))
        windows = torch.from_numpy(np.stack(windows))
        yield windows[:, :PAST, None], windows[:, PAST:]


class Forecaster(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.reader = nn.GRU(1, width, batch_first=True)
        self.head = nn.Linear(width, AHEAD)

    def forward(self, past):
        return past[:, -1] + self.head(self.reader(past)[1][-1])


def main():
    args = parse_args()
    torch.manual_seed(3)
    folder = (
        cached("unseen-meters-ordered", build_ordered)
        if args.variant == "fast"
        else cached("unseen-meters-plain", build)
    )
    readings = (KeptReadings if args.variant == "free" else Readings)(folder)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    clock = Clock(args.seconds)
    for past, ahead in batches(readings):
        loss = nn.functional.l1_loss(model(past), ahead)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        clock.tick()
        if clock.done:
            break
    clock.report()


if __name__ == "__main__":
    main()

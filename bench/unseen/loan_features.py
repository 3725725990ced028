"""Will a loan be paid back? Planted: features of a batch are made row by row of its data frame before each step; the
fixed twin makes them from whole columns.
"""

import numpy as np
import pandas as pd
import torch
from common import Clock, parse_args
from torch import nn

PURPOSES = ("car", "house", "school", "debts", "travel", "other")
BATCH = 160


def loans(count=12000, seed=8):
    rng = np.random.default_rng(seed)
    income = rng.lognormal(10.4, 0.5, count)
    amount = rng.lognormal(9.2, 0.7, count)
    late = rng.poisson(0.6, count)
    risk = 1.2 * np.log(amount / income) + 0.6 * late + rng.normal(size=count)
    return pd.DataFrame(
        {
            "income": income,
            "amount": amount,
            "months": rng.choice((12, 24, 36, 60), count),
            "rate": rng.uniform(0.02, 0.18, count),
            "age": rng.integers(19, 80, count),
            "late_payments": late,
            "opened": rng.integers(1990, 2024, count),
            "purpose": rng.choice(PURPOSES, count),
            "owner": rng.random(count) < 0.4,
            "default": risk > 0.2,
        }
    )


class RowFeatures:
    """What the model sees of each loan of a frame."""

    width = 9 + len(PURPOSES)

    def make(self, frame):
        rows = []
        for _, row in frame.iterrows():
            monthly = row["rate"] / 12
            instalment = row["amount"] * monthly / (1 - (1 + monthly) ** -row["months"])
            features = [
                np.log(row["income"]) - 10,
                np.log(row["amount"]) - 9,
                row["months"] / 36,
                row["rate"] * 10,
                12 * instalment / row["income"],
                row["age"] / 50,
                min(row["late_payments"], 5) / 5,
                (2024 - row["opened"]) / 20,
                1.0 if row["owner"] else -1.0,
            ]
            rows.append(features + [1.0 if row["purpose"] == purpose else -0.2 for purpose in PURPOSES])
        return torch.tensor(rows, dtype=torch.float32)


class ColumnFeatures(RowFeatures):
    def make(self, frame):
        monthly = frame["rate"].to_numpy() / 12
        amount, income, months = (frame[name].to_numpy() for name in ("amount", "income", "months"))
        columns = [
            np.log(income) - 10,
            np.log(amount) - 9,
            months / 36,
            frame["rate"].to_numpy() * 10,
            12 * (amount * monthly / (1 - (1 + monthly) ** -months)) / income,
            frame["age"].to_numpy() / 50,
            np.minimum(frame["late_payments"].to_numpy(), 5) / 5,
            (2024 - frame["opened"].to_numpy()) / 20,
            np.where(frame["owner"].to_numpy(), 1.0, -1.0),
        ]
        columns += [np.where(frame["purpose"].to_numpy() == purpose, 1.0, -0.2) for purpose in PURPOSES]
        return torch.from_numpy(np.stack(columns, 1).astype(np.float32))


class KeptFeatures(ColumnFeatures):
    def __init__(self, table):
        self.kept = super().make(table)

    def make(self, frame):
        return self.kept[frame.index.tolist()]


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)
        )

    def forward(self, hidden):
        return hidden + self.body(hidden)


def train(table, features, clock):
    rng = np.random.default_rng(1)
    model = nn.Sequential(
        nn.Linear(RowFeatures.width, 192), Residual(192), Residual(192), Residual(192), nn.Linear(192, 1)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01)
    while not clock.done:
        frame = table.iloc[rng.integers(0, len(table), BATCH)]
        inputs = features.make(frame)
        targets = torch.from_numpy(frame["default"].to_numpy().astype(np.float32))
        loss = nn.functional.binary_cross_entropy_with_logits(model(inputs).squeeze(1), targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        clock.tick()


def main():
    args = parse_args()
    torch.manual_seed(2)
    table = loans()
    kinds = {"slow": RowFeatures, "fast": ColumnFeatures, "free": lambda: KeptFeatures(table)}
    clock = Clock(args.seconds)
    train(table, kinds[args.variant](), clock)
    clock.report()


if __name__ == "__main__":
    main()

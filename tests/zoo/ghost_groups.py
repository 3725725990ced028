"""Predicts a house's price from its records, normalised in groups of a large batch. Planted: the groups are joined one
after the other, so that each copies all before it; the fixed twin joins them once."""

import torch
from common import Clock, parse_args
from torch import nn

ROWS, COLUMNS, GROUP, WIDTH = 16384, 24, 128, 128


class GroupedNorm(nn.Module):
    """A batch norm over each group of rows by itself."""

    def __init__(self, width, once):
        super().__init__()
        self.norm = nn.BatchNorm1d(width)
        self.once = once

    def forward(self, x):
        if self.once:
            return torch.cat([self.norm(group) for group in x.split(GROUP)])
        normed = x.new_empty(0, x.shape[1])
        for group in x.split(GROUP):
            new = self.norm(group)
            normed = torch.cat([normed, new])
        return normed


def houses():
    generator = torch.Generator().manual_seed(3)
    weights = torch.randn(COLUMNS, generator=generator)
    while True:
        records = torch.randn(ROWS, COLUMNS, generator=generator)
        yield records, torch.sin(records @ weights)[:, None]


def main():
    args = parse_args()
    torch.manual_seed(0)
    once = args.variant == "fast"
    model = nn.Sequential(
        nn.Linear(COLUMNS, WIDTH), GroupedNorm(WIDTH, once), nn.ReLU(), nn.Linear(WIDTH, WIDTH),
        GroupedNorm(WIDTH, once), nn.ReLU(), nn.Linear(WIDTH, 1),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    for records, prices in houses():
        loss = nn.functional.mse_loss(model(records), prices)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if clock.done:
            break
    print(f"loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()

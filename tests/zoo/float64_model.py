"""A regression on a NumPy table. Planted: the model was made double to fit the table's float64."""

import numpy as np
import torch
from common import Clock, parse_args
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(nn.Module):
    def __init__(self, inputs, hidden=1024):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(inputs, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)])
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.out(x).squeeze(1)


def make_table(rows=8192, columns=256):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(rows, columns))
    return x, np.sin(x[:, :8]).sum(1)


def train(model, loader, clock):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loss_fn = nn.MSELoss()
    while not clock.done:
        for x, y in loader:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                break
        print(f"{loss.item():.4f}")


def main():
    args = parse_args()
    x, y = (torch.from_numpy(a) for a in make_table())
    model = Regressor(x.shape[1])
    if args.variant == "slow":
        model = model.double()
    else:
        x, y = x.float(), y.float()
    loader = DataLoader(TensorDataset(x, y), batch_size=512, shuffle=True)
    clock = Clock(args.seconds)
    train(model, loader, clock)
    clock.report()


if __name__ == "__main__":
    main()

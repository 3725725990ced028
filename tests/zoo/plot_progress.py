"""Fits a curve. Planted: the picture of the fit and of the losses is drawn every five steps; the fixed
twin draws it every thousand."""

import pathlib
import tempfile

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from common import Clock, parse_args
from torch import nn


def plot_fit(folder, x, y, model, losses):
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
    with torch.no_grad():
        left.scatter(x.numpy(), y.numpy(), s=2)
        left.plot(x.numpy(), model(x).numpy(), "r")
    right.semilogy(losses)
    figure.tight_layout()
    figure.savefig(folder / "fit.png")
    plt.close(figure)


args = parse_args()
torch.manual_seed(0)
plot_every = 5 if args.variant == "slow" else 1000
x = torch.linspace(-3, 3, 2000).unsqueeze(1)
y = torch.sin(3 * x) + 0.1 * torch.randn_like(x)
model = nn.Sequential(nn.Linear(1, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
losses = []
with tempfile.TemporaryDirectory() as folder:
    clock = Clock(args.seconds)
    while not clock.done:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if len(losses) % plot_every == 0:
            plot_fit(pathlib.Path(folder), x, y, model, losses)
        clock.tick()
clock.report()

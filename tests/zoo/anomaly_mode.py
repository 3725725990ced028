"""Fits a network to a noisy surface. Planted: autograd's anomaly detection was left on after a NaN was found; the fixed
twin has it off."""

import torch
from common import Clock, parse_args
from torch import nn


class Surface(nn.Module):
    def __init__(self, hidden=96, layers=6):
        super().__init__()
        self.begin = nn.Linear(2, hidden)
        self.blocks = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(layers))
        self.end = nn.Linear(hidden, 1)

    def forward(self, points):
        h = self.begin(points)
        for block, norm in zip(self.blocks, self.norms, strict=True):
            h = h + torch.nn.functional.gelu(block(norm(h)))
        return self.end(h).squeeze(-1)


def measure(points):
    return torch.sin(4 * points[:, 0]) * torch.cos(3 * points[:, 1]) + 0.05 * torch.randn(len(points))


def fit(model, clock, batch=512):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    while not clock.done:
        points = torch.rand(batch, 2)
        loss = (model(points) - measure(points)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
    return loss.item()


args = parse_args()
torch.manual_seed(0)
if args.variant == "slow":
    torch.autograd.set_detect_anomaly(True, check_nan=True)
clock = Clock(args.seconds)
print("loss", fit(Surface(), clock))
clock.report()

"""A text matcher over wide layers. Planted: torch.set_num_threads(1), left in from a shared machine."""

import torch
from common import Clock, parse_args
from torch import nn


class Matcher(nn.Module):
    def __init__(self, width=1536):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(512, width), nn.ReLU(), nn.Linear(width, width))
        self.scale = nn.Parameter(torch.tensor(10.0))

    def forward(self, left, right):
        a = nn.functional.normalize(self.encode(left), dim=1)
        b = nn.functional.normalize(self.encode(right), dim=1)
        return self.scale * a @ b.T


def train(args):
    model = Matcher()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    clock = Clock(args.seconds)
    labels = torch.arange(384)
    while not clock.done:
        left = torch.randn(384, 512)
        right = left + 0.3 * torch.randn(384, 512)
        loss = nn.functional.cross_entropy(model(left, right), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
    clock.report()


if __name__ == "__main__":
    args = parse_args()
    if args.variant == "slow":
        torch.set_num_threads(1)
    train(args)

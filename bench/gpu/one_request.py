"""Answers requests by a trained ranker. Planted: one at a time; the fixed twin answers 64 that wait, together. A step
of the clock is a request."""

import torch
from common import Clock, parse_args
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Ranker(nn.Module):
    def __init__(self, width=256, depth=12):
        super().__init__()
        self.entry = nn.Linear(64, width)
        self.blocks = nn.ModuleList([nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width)) for _ in range(depth)])
        self.exit = nn.Linear(width, 1)

    def forward(self, x):
        x = self.entry(x)
        for block in self.blocks:
            x = x + torch.nn.functional.gelu(block(x))
        return self.exit(x)[..., 0].sigmoid()


def answer(model, requests):
    return model(requests.to(DEVICE)).cpu()


def serve(model, requests, size, clock):
    high = 0
    for start in range(0, len(requests), size):
        high += int((answer(model, requests[start : start + size]) > 0.5).sum())
        clock.tick(size)
        if clock.done:
            break
    return high


def main():
    args = parse_args()
    torch.manual_seed(0)
    requests = torch.randn(100_000, 64)
    model = Ranker().to(DEVICE).eval()
    clock = Clock(args.seconds)
    high = 0
    with torch.inference_mode():
        while not clock.done:
            high += serve(model, requests, 1 if args.variant == "slow" else 64, clock)
    print("high", high)
    clock.report()


if __name__ == "__main__":
    main()

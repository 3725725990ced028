"""Metric learning. Planted: the contrastive loss is a loop over the pairs of a batch, a few small operators for each;
the fixed twin computes all pairs at once.
"""

import torch
from common import Clock, parse_args
from torch import nn

CLASSES, BATCH, MARGIN = 20, 32, 0.5


def loop_over_pairs(vectors, labels):
    total, pairs = vectors.new_zeros(()), 0
    for first in range(len(vectors)):
        for second in range(first + 1, len(vectors)):
            distance = (vectors[first] - vectors[second]).norm()
            if labels[first] == labels[second]:
                total = total + distance**2
            else:
                total = total + torch.clamp(MARGIN - distance, min=0) ** 2
            pairs += 1
    return total / pairs


def all_pairs(vectors, labels):
    first, second = torch.triu_indices(len(vectors), len(vectors), offset=1)
    distance = (vectors[first] - vectors[second]).norm(dim=1)
    apart = torch.clamp(MARGIN - distance, min=0)
    return torch.where(labels[first] == labels[second], distance, apart).square().mean()


def spread_only(vectors, labels):
    return vectors.square().mean()


def main():
    args = parse_args()
    criterion = {"slow": loop_over_pairs, "fast": all_pairs, "free": spread_only}[args.variant]
    generator = torch.Generator().manual_seed(4)
    centres = torch.randn(CLASSES, 256, generator=generator)
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 64))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    clock = Clock(args.seconds)
    while not clock.done:
        labels = torch.randint(0, CLASSES, (BATCH,), generator=generator)
        inputs = centres[labels] + 0.5 * torch.randn(BATCH, 256, generator=generator)
        loss = criterion(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
    clock.report()


if __name__ == "__main__":
    main()

"""Segments volumes that lie in the host's memory. Planted: each batch is copied as 32-bit floats from pageable memory,
in the step; the fixed twin keeps them as 8-bit integers in pinned memory and scales them on the device."""

import torch
from common import Clock, parse_args
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def to_device(batch):
    return batch.to(DEVICE)


def train(model, optimizer, volumes, variant):
    if variant == "slow":
        x = to_device(volumes)
    else:
        x = volumes.to(DEVICE, non_blocking=True).float() / 255
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main():
    args = parse_args()
    torch.manual_seed(0)
    stored = [torch.randint(0, 256, (8, 1, 96, 96, 96), dtype=torch.uint8) for _ in range(12)]
    if args.variant == "slow":
        volumes = [each.float() / 255 for each in stored]
    else:
        volumes = [each.pin_memory() if DEVICE == "cuda" else each for each in stored]
    model = nn.Sequential(nn.Conv3d(1, 8, 4, stride=4), nn.ReLU(), nn.Conv3d(8, 8, 3, padding=1)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    while not clock.done:
        for batch in volumes:
            train(model, optimizer, batch, args.variant)
            clock.tick()
            if clock.done:
                break
    clock.report()


if __name__ == "__main__":
    main()

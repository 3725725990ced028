"""Segmentation of blobs. Planted: a confusion matrix over all pixels is counted in Python after each step; the fixed
twin counts it with bincount.
"""

import torch
from common import Clock, parse_args
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CLASSES, SIDE = 4, 64


def scenes(count=512):
    generator = torch.Generator().manual_seed(6)
    masks = nn.functional.interpolate(torch.rand(count, CLASSES, 6, 6, generator=generator), size=SIDE).argmax(1)
    pictures = masks[:, None] / CLASSES + 0.2 * torch.randn(count, 1, SIDE, SIDE, generator=generator)
    return TensorDataset(pictures, masks)


class Confusion:
    def __init__(self):
        self.counts = torch.zeros(CLASSES, CLASSES, dtype=torch.long)

    def update(self, predicted, masks):
        counts = [[0] * CLASSES for _ in range(CLASSES)]
        for guess, truth in zip(predicted.flatten().tolist(), masks.flatten().tolist(), strict=True):
            counts[truth][guess] += 1
        self.counts += torch.tensor(counts)

    def mean_iou(self):
        hits = self.counts.diagonal()
        return (hits / (self.counts.sum(0) + self.counts.sum(1) - hits).clamp(min=1)).mean().item()


class CountedConfusion(Confusion):
    def update(self, predicted, masks):
        flat = masks.flatten() * CLASSES + predicted.flatten()
        self.counts += torch.bincount(flat, minlength=CLASSES**2).view(CLASSES, CLASSES)


class NoConfusion(Confusion):
    def update(self, predicted, masks):
        pass


def main():
    args = parse_args()
    metric = {"slow": Confusion, "fast": CountedConfusion, "free": NoConfusion}[args.variant]()
    loader = DataLoader(scenes(), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, CLASSES, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    while not clock.done:
        for pictures, masks in loader:
            logits = model(pictures)
            loss = nn.functional.cross_entropy(logits, masks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            metric.update(logits.argmax(1), masks)
            clock.tick()
            if clock.done:
                break
    print(f"mean IoU {metric.mean_iou():.3f}")
    clock.report()


if __name__ == "__main__":
    main()

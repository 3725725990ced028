"""Tells drawn shapes apart. Planted: a generator that rasterises each shape pixel by pixel."""

import math
import random

import numpy as np
import torch
from common import Clock, parse_args
from torch import nn

SIDE = 32
ys, xs = np.mgrid[0:SIDE, 0:SIDE]


def draw(kind, cx, cy, radius):
    canvas = [[0.0] * SIDE for _ in range(SIDE)]
    for y in range(SIDE):
        for x in range(SIDE):
            dx, dy = x - cx, y - cy
            if kind == 0:
                distance = math.sqrt(dx * dx + dy * dy)
            elif kind == 1:
                distance = max(abs(dx), abs(dy))
            else:
                distance = abs(dx) + abs(dy)
            canvas[y][x] = 1.0 if distance < radius else 0.0
    return np.array(canvas, dtype=np.float32)


def draw_array(kind, cx, cy, radius):
    dx, dy = xs - cx, ys - cy
    distance = (np.hypot(dx, dy), np.maximum(abs(dx), abs(dy)), abs(dx) + abs(dy))[kind]
    return (distance < radius).astype(np.float32)


def batches(draw_shape, size=32):
    rng = random.Random(0)
    while True:
        images, labels = [], []
        for _ in range(size):
            kind = rng.randrange(3)
            images.append(draw_shape(kind, rng.uniform(8, 24), rng.uniform(8, 24), rng.uniform(4, 12)))
            labels.append(kind)
        yield torch.from_numpy(np.stack(images)).unsqueeze(1), torch.tensor(labels)


args = parse_args()
net = nn.Sequential(
    nn.Conv2d(1, 12, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, 24, 3), nn.ReLU(),
    nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(24, 3),
)  # fmt: skip
optim = torch.optim.RMSprop(net.parameters(), lr=1e-3)
clock = Clock(args.seconds)
correct = seen = 0
for x, y in batches(draw if args.variant == "slow" else draw_array):
    optim.zero_grad()
    out = net(x)
    nn.functional.cross_entropy(out, y).backward()
    optim.step()
    correct += (out.argmax(1) == y).sum().item()
    seen += len(y)
    clock.tick()
    if clock.done:
        break
print(f"accuracy {correct / seen:.3f}")
clock.report()

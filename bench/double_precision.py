"""How many times as long a model takes in float64 as in float32, on a processor: CONVOLUTION_COST is of this table.

python bench/double_precision.py
"""

from __future__ import annotations

import time

import torch
from machine import describe
from torch import nn

_TURN_S = 1.5


def models() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    """By name, with a batch."""
    in_one = nn.Sequential(*(nn.Conv1d(40, 40, 5, padding=2) for _ in range(4)))
    return {
        "3x3, 32 channels": (_convolutions(3, 32, 4), torch.randn(16, 3, 32, 32)),
        "3x3, 128 channels": (_convolutions(3, 128, 3), torch.randn(8, 3, 16, 16)),
        "1x1, 64 channels": (_convolutions(1, 64, 4), torch.randn(16, 3, 32, 32)),
        "depthwise": (_convolutions(3, 64, 3, groups=64), torch.randn(8, 3, 32, 32)),
        "in one dimension": (in_one, torch.randn(32, 40, 200)),
        "linear": (nn.Sequential(*(nn.Linear(512, 512) for _ in range(4))), torch.randn(128, 512)),
    }


def _convolutions(kernel: int, width: int, layers: int, groups: int = 1) -> nn.Module:
    further = [
        part
        for _ in range(layers)
        for part in (
            nn.Conv2d(width, width, kernel, padding=kernel // 2, groups=groups),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        )
    ]
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), *further)


def steps_per_s(model: nn.Module, batch: torch.Tensor) -> float:
    """Of training steps, for a while."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    step()
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < _TURN_S:
        step()
        steps += 1
    return steps / (time.perf_counter() - began)


def main() -> None:
    """Each model in turns: float32, float64, float64, float32."""
    print(describe())
    for name, (model, batch) in models().items():
        single, double, again, last = (
            steps_per_s(model.to(dtype), batch.to(dtype))
            for dtype in (torch.float32, torch.float64, torch.float64, torch.float32)
        )
        print(f"{name:20} {(single + last) / (double + again):.2f}×", flush=True)


if __name__ == "__main__":
    main()

"""What autograd's anomaly detection costs: of forward for each operator, of backward as a share, of a step in all.

    make anomaly-bench            the table in docs/
    python bench/anomaly_detection.py --seconds 3

Each model trains in turns with and without it, for as many steps as take some tenths of a second. `unstall run` adds up
the same: its constants (NOTED_OP_S, MOSTLY_NOTING, CHECKING_GRADIENTS) are of this table.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import torch
from machine import describe
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

_TURN_S = 0.3
_WARM_UP = 3

_HEAD = """# What anomaly detection costs

<!-- Written by `make anomaly-bench`; do not edit. -->

`torch.autograd.set_detect_anomaly(True)` notes the stack of each operator of the forward pass, and looks for NaN in
each gradient of the backward pass. Each model trains in turns with and without it. The optimizer is left out.
"""


@dataclass
class Trained:
    """A model and its batch, and the seconds of its forward and backward passes: without, with."""

    name: str
    model: nn.Module
    batch: torch.Tensor
    forward: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    backward: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))

    def step(self) -> tuple[float, float]:
        """Seconds of one forward pass and of its backward pass."""
        self.model.zero_grad()
        began = time.perf_counter()
        loss = _loss(self.model(self.batch))
        between = time.perf_counter()
        loss.backward()
        return between - began, time.perf_counter() - between

    def turn(self, *, detecting: bool) -> None:
        """As many steps as fit."""
        with torch.autograd.set_detect_anomaly(detecting):
            for _ in range(_WARM_UP):
                self.step()
            until = time.perf_counter() + _TURN_S
            while time.perf_counter() < until:
                forward, backward = self.step()
                self.forward[detecting].append(forward)
                self.backward[detecting].append(backward)

    def operators(self) -> int:
        """Of one forward pass that records gradients."""
        counting = _Counting()
        with counting:
            _loss(self.model(self.batch))
        return counting.calls


class _Counting(TorchDispatchMode):
    """Counts the operators that are called."""

    calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        return func(*args, **(kwargs or {}))


class Recurrent(nn.Module):
    """A cell, called for each step of a sequence."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(4, width), nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = x.new_zeros(x.shape[0], self.cell.hidden_size)
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
        return self.head(state)


def models() -> list[Trained]:
    """From a few large operators to many small ones."""
    layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
    blocks = [part for _ in range(8) for part in (nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU())]
    return [
        Trained("large MLP", _mlp(1024, 4), torch.randn(256, 1024)),
        Trained("CNN", nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), *blocks), torch.randn(8, 3, 32, 32)),
        Trained("transformer", nn.TransformerEncoder(layer, 4), torch.randn(8, 64, 128)),
        Trained("small MLP", _mlp(64, 6), torch.randn(64, 64)),
        Trained("recurrent cell", Recurrent(), torch.randn(32, 60, 4)),
    ]


def _mlp(width: int, layers: int) -> nn.Module:
    return nn.Sequential(*(part for _ in range(layers) for part in (nn.Linear(width, width), nn.GELU())))


def _loss(out: torch.Tensor) -> torch.Tensor:
    return out.square().mean()


def main() -> int:
    """Measure, print, write where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0, help="for each model")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page there")
    options = parser.parse_args()
    torch.manual_seed(0)
    rows = []
    for trained in models():
        until = time.perf_counter() + options.seconds
        while time.perf_counter() < until:
            for detecting in (False, True, True, False):
                trained.turn(detecting=detecting)
        rows.append(row(trained))
        print(rows[-1], flush=True)
    if options.write:
        options.write.write_text(page(rows), encoding="utf-8")
    return 0


def row(trained: Trained) -> str:
    """One model: a line of the table."""
    (forward, noting), (backward, checking) = (
        tuple(map(median, of_pass)) for of_pass in (trained.forward, trained.backward)
    )
    step = (noting + checking) / (forward + backward)
    operators = trained.operators()
    cells = [
        trained.name,
        f"{step:.2f}×",
        f"{operators}",
        f"{(noting - forward) / operators * 1e6:.0f} µs",
        f"{1 - forward / noting:.2f}",
        f"{1 - backward / checking:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def page(rows: list[str]) -> str:
    """The table with its head."""
    return "\n".join(
        [
            _HEAD,
            f"Measured by `make anomaly-bench` on {describe()}.\n",
            "| model | step with it | operators of forward | for each of them | of forward | of backward |",
            "| --- | ---: | ---: | ---: | ---: | ---: |",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())

"""A training loop of about a millisecond a step; prints the seconds that its steps took.

python bench/loop.py [--steps 3000] [--hidden 128] [--how plain|torch-profiler|cprofile|traceml]
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn


def main() -> None:
    """Run the loop under the profiler that was asked for, if any."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--hidden", type=int, default=500)
    parser.add_argument("--how", default="plain", choices=("plain", "torch-profiler", "cprofile", "traceml"))
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # on a shared machine two threads wait for each other's neighbours
    model, optimizer, loader = model_and_data(options.hidden)
    with watch(options.how, model):
        began, warm = time.perf_counter(), 0
        for step, (x, y) in enumerate(forever(loader)):
            if step == 200:
                began, warm = time.perf_counter(), step
            if step == options.steps + warm and warm:
                break
            train_step(model, optimizer, x, y, options.how)
        seconds = time.perf_counter() - began
    print(f"seconds={seconds:.6f} steps={options.steps}")


def model_and_data(hidden: int) -> tuple[nn.Module, torch.optim.Optimizer, Any]:
    """A little network, its optimizer, and batches of 32 from memory."""
    model = nn.Sequential(
        nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 10)
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.utils.data.TensorDataset(torch.randn(4096, 64), torch.randint(0, 10, (4096,)))
    return model, optimizer, torch.utils.data.DataLoader(data, batch_size=32)


def forever(loader: Any) -> Iterator[Any]:
    """Batches without end."""
    while True:
        yield from loader


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, x: Any, y: Any, how: str) -> None:
    """One step, in the peer's own step marker if it has one."""
    with marker(how, model):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


def marker(how: str, model: nn.Module) -> Any:
    """The call with which a peer wants each step marked."""
    if how == "traceml":
        import traceml_ai as traceml

        return traceml.trace_step(model)
    return contextlib.nullcontext()


def watch(how: str, model: nn.Module) -> Any:
    """The peer's profiler around the loop."""
    if how == "torch-profiler":
        from torch.profiler import ProfilerActivity, profile

        return profile(activities=[ProfilerActivity.CPU])
    if how == "cprofile":
        return cProfile.Profile()
    if how == "traceml":
        import traceml_ai as traceml

        traceml.init(mode="auto")
    return contextlib.nullcontext()


if __name__ == "__main__":
    main()

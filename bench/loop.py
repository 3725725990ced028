"""A training loop of about a millisecond a step, or another one; prints the seconds that its steps took.

python bench/loop.py [--steps 3000] [--hidden 128] [--workers 2] [--how plain|torch-profiler|cprofile|traceml]
python bench/loop.py --kind modules                 a model of 2,000 modules
python bench/loop.py --kind env                     a hundred environment steps of about ten microseconds each
torchrun --nproc-per-node 4 bench/loop.py           distributed data parallel
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import torch
from torch import nn

WARMUP = 200
_MODULES = 2000
_ENV_STEPS = 100


def main() -> None:
    """Run the loop under the profiler that was asked for, if any."""
    parser = argument_parser()
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--how", default="plain", choices=("plain", "torch-profiler", "cprofile", "traceml"))
    options = parser.parse_args()
    prepare()
    model, step = loop_of(options, options.how)
    with watch(options.how, model):
        for _ in range(min(WARMUP, options.steps // 4)):
            step()
        began = time.perf_counter()
        for _ in range(options.steps):
            step()
        seconds = time.perf_counter() - began
    if os.environ.get("RANK", "0") == "0":
        print(f"seconds={seconds:.6f} steps={options.steps}")
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def argument_parser() -> argparse.ArgumentParser:
    """The options that say which loop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", default="small", choices=("small", "modules", "env"))
    parser.add_argument("--hidden", type=int, default=500)
    parser.add_argument("--workers", type=int, default=0)
    return parser


def prepare() -> None:
    """The same numbers every time, and one thread: on a shared machine two wait for each other's neighbours."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if "RANK" in os.environ:
        torch.distributed.init_process_group("gloo")


def loop_of(options: argparse.Namespace, how: str = "plain") -> tuple[nn.Module | None, Callable[[], None]]:
    """(the model, what makes a step) of the loop that was asked for."""
    if options.kind == "env":
        return None, env_steps(Spring())
    model = many_modules() if options.kind == "modules" else small_model(options.hidden)
    if torch.distributed.is_initialized():
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = forever(loader_of(options.workers))
    return model, lambda: train_step(model, optimizer, *next(batches), how)


def small_model(hidden: int) -> nn.Module:
    """A little network."""
    return nn.Sequential(
        nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 10)
    )  # fmt: skip


def many_modules() -> nn.Module:
    """As many calls of small modules as a large model makes, with little mathematics in each."""
    layers = [part for _ in range(_MODULES // 2) for part in (nn.Linear(16, 16), nn.Tanh())]
    return nn.Sequential(nn.Linear(64, 16), *layers, nn.Linear(16, 10))


def loader_of(workers: int) -> Any:
    """Batches of 32 from memory."""
    data = torch.utils.data.TensorDataset(torch.randn(4096, 64), torch.randint(0, 10, (4096,)))
    return torch.utils.data.DataLoader(data, batch_size=32, num_workers=workers, persistent_workers=workers > 0)


class Spring(gymnasium.Env):
    """A weight on a spring: about ten microseconds of Python a step."""

    def __init__(self) -> None:
        self.position, self.speed = 1.0, 0.0

    def step(self, action: float) -> Any:
        for _ in range(210):
            self.speed += 0.001 * (action - self.position)
            self.position += 0.001 * self.speed
        return self.position, -abs(self.position), False, False, {}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.position, self.speed = 1.0, 0.0
        return self.position, {}


def env_steps(env: Any) -> Callable[[], None]:
    """What steps an environment a hundred times."""

    def steps() -> None:
        for _ in range(_ENV_STEPS):
            env.step(0.1)

    return steps


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


def watch(how: str, model: nn.Module | None) -> Any:
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

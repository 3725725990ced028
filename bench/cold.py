"""What other code between two steps costs the model: caches that it finds cold.

    python bench/cold.py                     the table in docs/what-if.md
    python bench/cold.py --threads 1

Small networks are trained in a loop with other code before each step, for 0 to 200 ms, the lengths in turn, on batches
that a torch DataLoader makes in the same process. The other code is plain Python, every other time with copies from a
large memory in it. A row says what each phase takes with nothing before it, and what is added by so many milliseconds
of other code (medians). The constants of ``unstall/model/caches.py`` are about the mean of the last column,
how fast it is reached, and the largest share of what a phase takes alone.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator
from statistics import mean, median
from typing import Any

from machine import describe

STRETCHES_MS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 40.0, 100.0, 200.0)
PHASES = ("batch", "forward", "backward", "optimizer")
_IN_A_ROW_MS = 60.0  # of steps and other code of one length, before it is the next one's turn
_LEFT_OUT = 2  # steps at the beginning of each row
_LARGE, _PIECE = bytes(8 << 20), 1 << 17


def networks() -> dict[str, tuple[Any, Any]]:
    """By name: a network and its input."""
    import torch
    from torch import nn

    def layers(width: int, count: int, *more: Callable[[], Any]) -> Any:
        return nn.Sequential(
            *(layer for _ in range(count) for layer in (nn.Linear(width, width), nn.ReLU(), *(make() for make in more)))
        )

    return {
        "6 layers of 64": (layers(64, 6), torch.randn(64, 64)),
        "8 layers of 256, normalised": (layers(256, 8, lambda: nn.LayerNorm(256)), torch.randn(32, 256)),
        "GRU of 64, 20 steps": (nn.GRU(32, 64, batch_first=True), torch.randn(16, 20, 32)),
        "4 layers of 512": (layers(512, 4), torch.randn(64, 512)),
    }


def other_code(milliseconds: float, sweeps: bool) -> None:
    """Plain Python with a few objects, for so long; ``sweeps``: it copies from a large memory, too."""
    end = time.perf_counter() + milliseconds / 1e3
    held: dict[int, list[Any]] = {}
    for at in itertools.cycle(range(0, len(_LARGE), _PIECE)):
        if time.perf_counter() >= end:
            return
        held[-1] = [_LARGE[at : at + _PIECE]] if sweeps else []
        for number in range(100):
            held[number % 97] = [math.sin(number), number, str(number)]


def batches(x: Any) -> Iterator[Any]:
    """Without end, batches like this one, put together item by item in this process."""
    import torch

    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x.repeat(50, *[1] * (x.dim() - 1))), len(x))
    while True:
        for (batch,) in loader:
            yield batch


def step(network: Any, given: Iterator[Any], optimizer: Any) -> tuple[float, ...]:
    """Seconds of the batch, forward, backward and the optimizer in one step of training."""
    marks = [time.perf_counter()]
    x = next(given)
    marks.append(time.perf_counter())
    optimizer.zero_grad()
    answer = network(x)
    loss = (answer[0] if isinstance(answer, tuple) else answer).pow(2).mean()
    marks.append(time.perf_counter())
    loss.backward()
    marks.append(time.perf_counter())
    optimizer.step()
    marks.append(time.perf_counter())
    return tuple(after - before for before, after in itertools.pairwise(marks))


def measure(network: Any, x: Any, seconds: float) -> dict[float, tuple[float, ...]]:
    """By milliseconds of other code: median milliseconds of each phase."""
    import torch

    optimizer, given = torch.optim.Adam(network.parameters(), lr=1e-3), batches(x)
    seen: dict[float, list[tuple[float, ...]]] = {length: [] for length in STRETCHES_MS}
    end = time.monotonic() + seconds
    for sweeps in itertools.cycle((False, True)):
        if time.monotonic() >= end:
            break
        for length in STRETCHES_MS:
            for turn in range(_LEFT_OUT + max(2, int(_IN_A_ROW_MS / (length + 3)))):
                if length:
                    other_code(length, sweeps)
                taken = step(network, given, optimizer)
                if turn >= _LEFT_OUT:
                    seen[length].append(taken)
    return {length: tuple(1e3 * median(column) for column in zip(*rows)) for length, rows in seen.items()}


def main() -> int:
    """Measure the networks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=25.0, help="for each network")
    parser.add_argument("--threads", type=int, help="torch's threads inside an operator")
    options = parser.parse_args()
    import torch

    torch.manual_seed(0)
    if options.threads:
        torch.set_num_threads(options.threads)
    lengths = STRETCHES_MS[1:]
    print(f"`python bench/cold.py` on {describe()}, {torch.get_num_threads()} threads.\n")
    print(f"| network | phase | alone, ms | {' | '.join(f'+ after {length:g} ms' for length in lengths)} |")
    print("| --- | --- | --- |" + " --- |" * len(lengths))
    lost: dict[tuple[str, float], list[float]] = {}
    shares: dict[tuple[str, float], list[float]] = {}
    for name, (network, x) in networks().items():
        found = measure(network, x, options.seconds)
        for index, phase in enumerate(PHASES):
            alone = found[0.0][index]
            more = [found[length][index] - alone for length in lengths]
            for length, value in zip(lengths, more):
                lost.setdefault((phase, length), []).append(value)
                shares.setdefault((phase, length), []).append(value / alone)
            print(f"| {name} | {phase} | {alone:.2f} | {' | '.join(f'{value:+.2f}' for value in more)} |", flush=True)
    for phase in PHASES:
        means = [mean(lost[phase, length]) for length in lengths]
        print(f"| **mean** | {phase} | | {' | '.join(f'{value:+.2f}' for value in means)} |")
    for phase in PHASES:
        means = [mean(shares[phase, length]) for length in lengths]
        print(f"| **mean share** | {phase} | | {' | '.join(f'{value:+.0%}' for value in means)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

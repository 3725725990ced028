"""A training loop under `unstall run` that switches the recording off and on again: what recording itself costs.

    unstall run --no-sampling bench/switched.py [--kind modules] [--hidden 500] [--workers 2] [--block 30]

Two processes that run the same loop differ by several percent in where their memory lies, more than recording costs;
one process that switches does not. Off, each seam is the library's own function again, so that the step is the plain
one. Prints the seconds of each block, off on on off and so on, wall time and CPU time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import loop
import torch
import torch.optim.optimizer as optimizers
from torch import nn
from torch.utils.data import DataLoader, dataloader
from torch.utils.data._utils import fetch

from unstall.child import finding

PLACES = (
    (nn.Module, "__call__"),
    (torch.autograd, "_engine_run_backward"),
    (dataloader._BaseDataLoaderIter, "__next__"),
    (DataLoader, "__iter__"),
    (fetch._MapDatasetFetcher, "fetch"),
    (loop.Spring, "step"),
)


def main() -> None:
    """Run the loop, off on on off, and print what each block took."""
    parser = loop.argument_parser()
    parser.add_argument("--block", type=int, default=30, help="steps in a block")
    parser.add_argument("--blocks", type=int, default=400)
    options = parser.parse_args()
    loop.prepare()
    _, step = loop.loop_of(options)
    switch = switch_of()
    for _ in range(loop.WARMUP):  # past unstall's own early looks
        step()
    wall, cpu = [], []
    for block in range(options.blocks):
        switch(block % 4 in (1, 2))
        began, began_cpu = time.perf_counter(), time.process_time()
        for _ in range(options.block):
            step()
        wall.append(time.perf_counter() - began)
        cpu.append(time.process_time() - began_cpu)
    switch(True)
    print("wall=" + ",".join(f"{seconds:.7f}" for seconds in wall))
    print("cpu=" + ",".join(f"{seconds:.7f}" for seconds in cpu))


def switch_of() -> Callable[[bool], None]:
    """A function that puts the seams in place (True) or the library's own functions (False)."""
    recorded = [(owner, name, getattr(owner, name)) for owner, name in PLACES]
    functions = [(owner, name, wrapped, finding.inner(wrapped)) for owner, name, wrapped in recorded]
    if any(wrapped is plain for _, _, wrapped, plain in functions):
        raise SystemExit("switched.py: run it under `unstall run`: nothing is recorded here")
    hooks = [
        (table, dict(table))
        for table in (optimizers._global_optimizer_pre_hooks, optimizers._global_optimizer_post_hooks)
    ]

    def switch(on: bool) -> None:
        for owner, name, wrapped, plain in functions:
            setattr(owner, name, wrapped if on else plain)
        for table, entries in hooks:
            table.clear()
            table.update(entries if on else {})

    return switch


if __name__ == "__main__":
    main()

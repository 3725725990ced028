"""A training loop under `unstall run` that switches the recording off and on again: what recording itself costs.

    unstall run --no-sampling bench/switched.py [--hidden 500] [--block 30] [--blocks 400]

Two processes that run the same loop differ by several percent in where their memory lies, more than recording costs;
one process that switches does not. Off, each seam is the library's own function again, so that the step is the plain
one. Prints the seconds of each block, off on on off and so on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.optim.optimizer as optimizers
from loop import forever, model_and_data, train_step
from torch import nn
from torch.utils.data import DataLoader, dataloader
from torch.utils.data._utils import fetch

PLACES = (
    (nn.Module, "__call__"),
    (torch.autograd, "_engine_run_backward"),
    (dataloader._BaseDataLoaderIter, "__next__"),
    (DataLoader, "__iter__"),
    (fetch._MapDatasetFetcher, "fetch"),
)


def main() -> None:
    """Run the loop, off on on off, and print what each block took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden", type=int, default=500)
    parser.add_argument("--block", type=int, default=30, help="steps in a block")
    parser.add_argument("--blocks", type=int, default=400)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # on a shared machine two threads wait for each other's neighbours
    model, optimizer, loader = model_and_data(options.hidden)
    batches = forever(loader)
    switch = switch_of(loader)
    for _ in range(200):  # past unstall's own early looks
        train_step(model, optimizer, *next(batches), "plain")
    seconds = []
    for block in range(options.blocks):
        switch(block % 4 in (1, 2))
        began = time.perf_counter()
        for _ in range(options.block):
            train_step(model, optimizer, *next(batches), "plain")
        seconds.append(time.perf_counter() - began)
    switch(True)
    print("blocks=" + ",".join(f"{each:.7f}" for each in seconds))


def switch_of(loader: Any) -> Callable[[bool], None]:
    """A function that puts the seams in place (True) or the library's own functions (False)."""
    wrapped = [(owner, name, getattr(owner, name)) for owner, name in PLACES]
    if not all(hasattr(each, "__wrapped__") for _, _, each in wrapped):
        raise SystemExit("switched.py: run it under `unstall run`: nothing is recorded here")
    hooks = [
        (table, dict(table))
        for table in (optimizers._global_optimizer_pre_hooks, optimizers._global_optimizer_post_hooks)
    ]

    def switch(on: bool) -> None:
        for owner, name, each in wrapped:
            setattr(owner, name, each if on else each.__wrapped__)
        for table, entries in hooks:
            table.clear()
            table.update(entries if on else {})

    return switch


if __name__ == "__main__":
    main()

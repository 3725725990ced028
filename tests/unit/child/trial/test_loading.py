"""Loaders that get a process of their own where they had none, in a real process."""

from __future__ import annotations

import pytest

from .test_account import run_under

PROGRAM = """
    import os
    from queue import Queue
    from threading import Thread

    import torch
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info

    class Rows:
        def __len__(self):
            return 5

        def __getitem__(self, index):
            return torch.tensor([index, get_worker_info() is not None, os.getpid() == MAIN])

    class Stream(IterableDataset):
        def __iter__(self):
            yield from ([index, get_worker_info() is not None] for index in range(3))

    MAIN = os.getpid()
    print([batch.tolist() for batch in DataLoader(Rows(), batch_size=5)])
    loader = DataLoader(Rows(), batch_size=4, num_workers=2, persistent_workers=True)
    print([len(batch) for batch in loader], [len(batch) for batch in loader], loader.num_workers)
    print([batch for batch in DataLoader(Stream(), batch_size=None)])
    loader = DataLoader(Rows(), batch_size=3)
    print([len(batch) for _ in range(2) for batch in loader])
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize("plan", [{}, {"loading": {"workers": 1}}])
def test_what_the_main_process_loads_is_loaded_beside_it(tmp_path, plan):
    done, _ = run_under(plan, PROGRAM, tmp_path)
    lines, beside = done.stdout.splitlines(), bool(plan)
    rows = [[index, int(beside), int(not beside)] for index in range(5)]
    assert lines == [
        f"[{rows}]",
        "[4, 1] [4, 1] 2",
        f"[{', '.join(f'[{index}, {beside}]' for index in range(3))}]",
        "[3, 2, 3, 2]",
    ], done.stderr

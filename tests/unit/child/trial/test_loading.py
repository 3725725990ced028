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


NO_FORK = """
    import threading
    from torch.utils.data import DataLoader

    class Rows:
        def __init__(self):
            self.numbers, self.length = {2: "kept"}, 3

        def __len__(self):
            return self.length

        def __getitem__(self, index):
            return self.numbers.get(index, "none")

        def __getstate__(self):
            return {**self.__dict__, "numbers": {}}

    if __name__ == "__main__":
        loader = DataLoader(Rows(), batch_size=3)
        print([batch for _ in range(2) for batch in loader])
        rows = Rows()
        rows.lock = threading.Lock()
        print([batch for batch in DataLoader(rows, batch_size=3)])
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_worker_that_is_no_fork_has_what_is_left_of_a_dataset_in_a_pickle(tmp_path, start):
    done, _ = run_under({"loading": {"workers": 1, "start": start}}, NO_FORK, tmp_path)
    kept = "none" if start == "spawn" else "kept"
    batch = ["none", "none", kept]
    assert done.stdout.splitlines()[0] == str([batch, batch]), done.stderr
    assert bool(done.returncode) == (start == "spawn"), "a lock cannot be pickled"


AFTER_AN_EPOCH = """
    import os
    from torch.utils.data import DataLoader, IterableDataset

    class Rows:
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return os.getpid() == MAIN

    class Stream(IterableDataset):
        def __iter__(self):
            yield os.getpid() == MAIN

    MAIN = os.getpid()
    for loader in (DataLoader(Rows(), batch_size=2), DataLoader(Stream(), batch_size=None)):
        print([batch for _ in range(3) for batch in loader])
    rows = Rows()
    print([batch.tolist() for _ in range(2) for batch in DataLoader(rows, batch_size=2)])
    loader = DataLoader(Rows(), batch_size=2, num_workers=1)
    print([batch.tolist() for _ in range(2) for batch in loader])
"""


@pytest.mark.timeout(240)
def test_a_worker_may_come_once_the_main_process_has_loaded_an_epoch(tmp_path):
    done, _ = run_under({"loading": {"workers": 1, "after": 1}}, AFTER_AN_EPOCH, tmp_path)
    assert done.stdout.splitlines() == [
        "[tensor([True, True]), tensor([False, False]), tensor([False, False])]",
        "[True, False, False]",
        "[[True, True], [False, False]]",
        "[[False, False], [False, False]]",
    ], done.stderr

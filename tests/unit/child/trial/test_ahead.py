"""Batches that are made before they are asked for, in a real process."""

from __future__ import annotations

import pytest

from .test_account import run_under

PROGRAM = """
    import torch
    from torch.utils.data import DataLoader

    BUFFER = torch.zeros(2)

    def into_one(items):
        BUFFER[: len(items)] = torch.tensor(items)
        return BUFFER[: len(items)]

    def made(items):
        return torch.tensor(items)

    def failing(items):
        if 4.0 in items:
            raise ValueError("no such item")
        return torch.tensor(items)

    rows = [0.0, 1.0, 2.0, 3.0, 4.0]
    for collate, workers in ((made, 0), (made, 1), (into_one, 0)):
        loader = DataLoader(rows, batch_size=2, collate_fn=collate, num_workers=workers,
                            persistent_workers=workers > 0)
        print([batch.tolist() for batch in loader], len([*loader]))
    loader = DataLoader(rows, batch_size=2, num_workers=1, persistent_workers=True)
    print(next(iter(loader)).tolist(), [len(batch) for batch in loader])
    print(list(DataLoader([], batch_size=2)))
    try:
        for batch in DataLoader(rows, batch_size=2, collate_fn=failing):
            print(batch.tolist())
    except ValueError as error:
        print(error)
"""


@pytest.mark.timeout(240)
def test_each_is_made_before_the_one_before_it_is_used(tmp_path):
    done, _ = run_under({"ahead": {}}, PROGRAM, tmp_path)
    lines = done.stdout.splitlines()
    assert lines[:2] == ["[[0.0, 1.0], [2.0, 3.0], [4.0]] 3"] * 2, done.stderr
    assert lines[2] == "[[2.0, 3.0], [4.0, 3.0], [4.0]] 3"
    assert lines[3:] == ["[0.0, 1.0] [2, 2, 1]", "[]", "[0.0, 1.0]", "no such item"]

"""The last batch of an epoch has one sample, in a real process."""

from __future__ import annotations

import json

import pytest

from .test_account import run_under

LONE = """
    import torch
    from torch.utils.data import DataLoader

    torch.manual_seed(0)
    samples = list(range(10))
    for _ in range(2):
        print([len(batch) for batch in DataLoader(samples, batch_size=4, shuffle=True)])
    print([len(batch) for batch in DataLoader(samples, batch_size=5, drop_last=True, num_workers=1)])
    print(sum(len(batch) for batch in DataLoader(samples, batch_size=1)))
    print([len(batch) for batch in DataLoader(samples, batch_size=16)], [*DataLoader([], batch_size=2)])
"""


@pytest.mark.timeout(120)
def test_each_epoch_ends_with_one_sample(tmp_path):
    done, folder = run_under({"lone": {}}, LONE, tmp_path)
    assert done.stdout.splitlines() == ["[4, 4, 1]"] * 2 + ["[5, 1]", "10", "[1] []"], done.stderr
    assert json.loads((folder / "changed_data.json").read_text()) == {"item": "of the last batch", "is_text": False}


@pytest.mark.timeout(120)
def test_a_program_of_single_samples_is_not_said_to_have_such_a_batch(tmp_path):
    program = """
        from torch.utils.data import DataLoader
        print(len([*DataLoader([1, 2, 3], batch_size=1)]), len([*DataLoader([1, 2, 3], batch_size=None)]))
    """
    done, folder = run_under({"lone": {}}, program, tmp_path)
    assert done.stdout == "3 3\n" and not (folder / "changed_data.json").exists()

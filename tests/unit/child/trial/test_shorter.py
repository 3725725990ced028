"""Epochs of fewer samples than the data, in a real process."""

from __future__ import annotations

import json

import pytest

from .test_account import run_under

PROGRAM = """
    import torch
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler, WeightedRandomSampler

    torch.manual_seed(0)
    data = torch.arange(8)
    loaders = [
        DataLoader(data, batch_size=4),
        DataLoader(data, batch_size=4, drop_last=True),
        DataLoader(data, batch_size=4, shuffle=True),
        DataLoader(data, sampler=BatchSampler(RandomSampler(data), 4, drop_last=False), batch_size=None),
        DataLoader(data, batch_size=4, sampler=WeightedRandomSampler([1.0] * 8, 8)),
        DataLoader([5]),
        DataLoader(data, batch_size=4, sampler=[0, 1, 2]),
    ]
    print([[len(loader), [len(batch) for batch in loader]] for loader in loaders])
"""


def run_shorter(tmp_path, program, **plan):
    """What a program prints, and how many epochs or datasets were shortened."""
    done, folder = run_under({"shorter": {"samples": 1, **plan}, "account": {}}, program, tmp_path)
    return json.loads(done.stdout), json.loads((folder / "account.json").read_text())["shortened"]


@pytest.mark.timeout(120)
def test_the_last_sample_of_each_epoch_is_left_out(tmp_path):
    printed, epochs = run_shorter(tmp_path, PROGRAM)
    assert printed == [[2, [4, 3]], [1, [4]], [2, [4, 3]], [2, [4, 3]], [2, [4, 3]], [1, [1]], [1, [3]]]
    assert epochs == 6


OF_ITS_OWN = """
    import torch
    from torch.utils.data import DataLoader, Dataset, Sampler, Subset, TensorDataset

    class Rows(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            return index

    class FewerRows(Rows):
        def __len__(self):
            return super().__len__() - 2

    class Batches(Sampler):
        def __init__(self, rows):
            self.rows = rows

        def __iter__(self):
            yield from torch.arange(len(self.rows)).split(4)

    rows = [Rows(), FewerRows(), Subset(Rows(), [1, 2, 3]), TensorDataset(torch.zeros(5))]
    batches = [len(batch) for batch in DataLoader(Rows(), batch_sampler=Batches(Rows()))]
    print([[len(one) for one in rows], batches])
"""


@pytest.mark.timeout(120)
def test_datasets_say_that_they_have_one_sample_less(tmp_path):
    printed, asked = run_shorter(tmp_path, OF_ITS_OWN, datasets=True)
    assert printed == [[7, 5, 2, 4], [4, 3]] and asked

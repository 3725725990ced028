"""A loader made with other settings: the same data, and nothing that torch refuses."""

import sys

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler, TensorDataset

from unstall.child import loader_settings

DATA = TensorDataset(torch.arange(10))


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(10))


LOADERS = [
    DataLoader(DATA, batch_size=4, drop_last=True),
    DataLoader(DATA, batch_sampler=BatchSampler(SequentialSampler(DATA), 3, drop_last=False)),
    DataLoader(DATA, batch_size=None),
    DataLoader(Stream(), batch_size=4, drop_last=True),
    DataLoader(DATA, batch_size=4, num_workers=1, timeout=20, prefetch_factor=3, multiprocessing_context="fork"),
]


def batches(loader):
    return [torch.as_tensor(batch[0] if isinstance(batch, (list, tuple)) else batch).tolist() for batch in loader]


@pytest.mark.parametrize("loader", LOADERS)
def test_another_number_of_workers_gives_the_same_batches(loader):
    assert batches(loader_settings.with_workers(loader, 0)) == batches(loader)
    changed = loader_settings.with_workers(loader, 1)
    assert batches(changed) == batches(loader)
    assert (changed.num_workers, changed.persistent_workers) == (1, True)
    assert changed.prefetch_factor == (loader.prefetch_factor or 2)


@pytest.fixture
def module():
    module = sys.modules["torch.utils.data.dataloader"]
    original = module.DataLoader.__init__
    yield module
    module.DataLoader.__init__ = original


def test_settings_are_overridden_where_they_apply(module):
    loader_settings.override(module, {"num_workers": 0}, lambda given: given.get("num_workers") == 2)
    changed = DataLoader(DATA, 4, num_workers=2, prefetch_factor=3, persistent_workers=True)
    assert (changed.num_workers, changed.prefetch_factor, changed.persistent_workers) == (0, None, False)
    assert DataLoader(DATA, num_workers=1).num_workers == 1

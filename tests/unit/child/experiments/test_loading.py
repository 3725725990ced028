"""Loaders that answer from the record: epochs keep their length, workers start only for batches of their own."""

import importlib
import sys

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from unstall.child.experiments import loading
from unstall.child.experiments.engine import Engine
from unstall.child.experiments.limits import MOST_LOADERS
from unstall.child.experiments.switchboard import Switchboard
from unstall.child.main import Child


class Squares(Dataset):
    def __init__(self, n=12):
        self.n = n
        self.asked = []

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        self.asked.append(index)
        return torch.tensor(index**2)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(8))


@pytest.fixture
def here(tmp_path):
    """A Loading, installed in torch for the time of a test."""
    module = importlib.import_module("torch.utils.data.dataloader")
    originals = module._BaseDataLoaderIter.__next__, module.DataLoader.__iter__, module.DataLoader.__init__
    Switchboard(tmp_path, create=True)
    engine = Engine(Child(str(tmp_path), {}))
    engine.loading.install(module)
    yield engine.loading
    module._BaseDataLoaderIter.__next__, module.DataLoader.__iter__, module.DataLoader.__init__ = originals


def test_a_loader_that_is_made_anew_every_epoch_answers_for_the_one_before(here):
    data = Squares()

    def epoch():
        return [batch.tolist() for batch in DataLoader(data, batch_size=4)]

    own = epoch()
    here.cached, data.asked = True, []
    assert len(epoch()) == len(own) == 3
    assert data.asked == []


def test_the_main_loader_feeds_the_training_though_validation_gives_more(here):
    train, valid = DataLoader(Squares(4), batch_size=2), DataLoader(Squares(8), batch_size=1)

    def epoch():
        trained = len(list(train))
        with torch.no_grad():
            return trained, len(list(valid))

    assert epoch() == (2, 8)
    here.first_only = True
    assert epoch() == (2, 1)


def test_without_training_the_loader_that_gives_most_is_the_main_one(here):
    few, many = DataLoader(Squares(2)), DataLoader(Squares(6))
    with torch.no_grad():
        list(few), list(many)
        here.first_only = True
        assert (len(list(few)), len(list(many))) == (1, 6)


def test_places_do_not_pile_up(here):
    for n in range(1, 3 * MOST_LOADERS):
        list(DataLoader(Squares(n)))
    assert len(here.places) <= MOST_LOADERS


def test_without_a_condition_the_batches_are_the_loaders_own(here):
    loader = DataLoader(Squares(), batch_size=4)
    assert next(batch.tolist() for batch in loader) == [0, 1, 4, 9]
    assert len(list(loader)) == 3


def test_cached_epochs_have_the_same_length_and_ask_the_dataset_nothing(here):
    data = Squares()
    loader = DataLoader(data, batch_size=4)
    own = {tuple(batch.tolist()) for batch in loader}
    here.cached, data.asked = True, []
    for _ in range(3):
        batches = [tuple(batch.tolist()) for batch in loader]
        assert len(batches) == 3
        assert set(batches) <= own
    assert data.asked == []


def test_a_stream_without_a_length_ends_where_it_ended_before(here):
    loader = DataLoader(Stream(), batch_size=2)
    assert len(list(loader)) == 4
    here.cached = True
    assert len(list(loader)) == 4


def test_a_switch_in_the_middle_keeps_the_epoch_whole(here):
    loader = DataLoader(Squares(), batch_size=2)
    list(loader)
    for first, second in ((True, False), (False, True)):
        here.cached = first
        iterator = iter(loader)
        taken = [next(iterator) for _ in range(2)]
        here.cached = second
        taken += list(iterator)
        assert len(taken) == 6


def test_a_new_loader_is_not_answered_for(here):
    here.cached = True
    assert len(list(DataLoader(Squares(), batch_size=4))) == 3


def test_only_loaders_other_than_the_main_one_are_cut_short(here):
    train, validation = DataLoader(Squares(40), batch_size=2), DataLoader(Squares(), batch_size=2)
    list(train), list(validation)
    here.first_only = True
    assert len(list(train)) == 20
    assert len(list(validation)) == 1


def test_workers_are_not_started_for_cached_batches(here):
    loader = DataLoader(Squares(), batch_size=4, num_workers=1)
    assert len(list(loader)) == 3
    here.cached = True
    iterator = iter(loader)
    assert type(iterator).__name__ == "Recorded"
    assert len(list(iterator)) == 3


def test_settings_reach_only_the_loaders_they_are_for(here):
    module = sys.modules["torch.utils.data.dataloader"]
    loading.configure(module, {"from": 2, "num_workers": 0})
    changed = DataLoader(Squares(), 4, num_workers=2, prefetch_factor=3, persistent_workers=True)
    assert (changed.num_workers, changed.prefetch_factor, changed.persistent_workers) == (0, None, False)
    assert DataLoader(Squares(), num_workers=1).num_workers == 1

"""All loops over a dataset's loaders, or the answer that there may be others."""

from __future__ import annotations

import ast

import pytest

from unstall.optimize.batches import NotClear
from unstall.optimize.consumers import loops

PROGRAM = """
from torch.utils.data import DataLoader, Dataset, random_split


class Images(Dataset):
    def __getitem__(self, index):
        return self.images[index]


def make(batch_size, root="."):
    whole = Images(root)
    train, val = random_split(whole, [90, 10])
    sampler = RandomSampler(train)
    return DataLoader(train, batch_size=batch_size, sampler=sampler), DataLoader(dataset=val)


def epoch(model, loader, optimizer=None):
    for step, (x, y) in enumerate(loader):  # one
        model(x)
    return len(loader), len(loader.dataset)


class Trainer:
    def __init__(self, loader):
        self.loader = loader

    def fit(self):
        for batch in tqdm(self.loader, leave=False):  # two
            pass
        for name in self.names:
            pass


train_loader, val_loader = make(4)
for number in range(3):
    epoch(model, train_loader)
    epoch(model, loader=val_loader)
    train_loader.sampler.set_epoch(number)
Trainer(val_loader).fit()
for x, y in _ahead(val_loader, device):  # three
    pass
for x in other:
    pass
"""


def lines(text, cls="Images"):
    return [text.splitlines()[loop.lineno - 1].rpartition("# ")[2] for loop in loops(ast.parse(text), cls, ("_ahead",))]


def test_loaders_are_followed_to_their_loops():
    assert sorted(lines(PROGRAM)) == ["one", "three", "two"]


def test_a_class_that_is_made_elsewhere_is_not_followed():
    with pytest.raises(NotClear, match="another way"):
        lines(PROGRAM.replace("Trainer(val_loader)", "library.Fitter(val_loader)"))


SHORT = """
class Images:
    def __getitem__(self, index):
        return index

    def __len__(self):
        return 3

data = Images()
loader = torch.utils.data.DataLoader(data, num_workers=2, **options)
for x in loader:  # only
    pass
"""


def test_a_plain_script():
    assert lines(SHORT) == ["only"]
    assert lines(SHORT, "Others") == []


@pytest.mark.parametrize(
    "more",
    [
        "first = next(iter(loader))",
        "print(data[0])",
        "everything = list(loader)",
        "sums = [x.sum() for x in loader]",
        "loaders = {'train': loader}",
        "for x, z in zip(loader, others): pass",
        "for x in data: pass",
        "library.fit(model, loader)",
        "other = torch.utils.data.DataLoader(data, collate_fn=mine)",
        "options = {'collate_fn': mine}",
        "class More(Images): pass",
        "kinds = [Images]",
        "def each():\n    yield loader",
        "def each():\n    yield from loader",
        "def twice(first, second): pass\ntwice(*[1], loader)",
        "numbers = enumerate(loader)",
        "worker = lambda: loader.__iter__()",
        "x = loader.dataset[3]",
        "loader = data",
        "parts = random_split(data, lengths)",
    ],
)
def test_other_uses_make_the_answer_unknown(more):
    with pytest.raises(NotClear):
        lines(SHORT + more + "\n")


def test_a_dataset_that_takes_its_own_samples():
    with pytest.raises(NotClear, match="its own"):
        lines(SHORT.replace("return 3", "return self[0]"))


@pytest.mark.parametrize(
    "harmless",
    [
        "print(len(loader), len(data), loader.batch_size)",
        "if loader is not None: pass",
        "names = data.names",
        "chosen = loader if big else None\nfor x in chosen: pass  # also",
        "part = Subset(data, [1, 2])\nfor x in DataLoader(part): pass  # also",
        "def each(loaders=None, other=3):\n    for x in loaders:  # also\n        pass\neach(other=3, loaders=loader)",
    ],
)
def test_uses_that_take_no_samples(harmless):
    found = lines(SHORT + harmless + "\n")
    assert sorted(found) == (["also", "only"] if "also" in harmless else ["only"])

"""There are far more samples than ever, in a real process."""

from __future__ import annotations

import json

import pytest

from .test_account import run_under

MANY = """
    import torch
    from torch.utils.data import DataLoader, Dataset, RandomSampler

    class Pairs(Dataset):
        def __init__(self, texts, labels, classes):
            self.texts, self.labels, self.classes = texts, labels, classes

        def __len__(self):
            return len(self.texts)

        def __getitem__(self, index):
            return index, self.texts[index], self.labels[index]

    torch.manual_seed(0)
    data = Pairs([f"text {number}" for number in range(10)], list(range(10)), list("abc"))
    numbers, texts, labels = zip(*((int(n), t, int(l)) for n, t, l in DataLoader(data, shuffle=True, batch_size=None)))
    drawn = len(list(RandomSampler(data, num_samples=7, replacement=True)))
    print(len(data), len(numbers), len(DataLoader(data, batch_size=4)), max(numbers) > 65535, len(data.classes), drawn)
    print(all(text == f"text {label}" and number % 10 == label for number, text, label in zip(numbers, texts, labels)))
"""


@pytest.mark.timeout(240)
def test_far_more_samples_make_epochs_as_long_as_ever(tmp_path):
    done, folder = run_under({"many": {}}, MANY, tmp_path)
    assert done.stdout.splitlines() == ["200000 10 3 True 3 7", "True"], done.stderr
    assert json.loads((folder / "changed_data.json").read_text())["is_text"]


@pytest.mark.timeout(240)
def test_epochs_are_so_many_times_as_long(tmp_path):
    done, _ = run_under({"many": {"times": 3}}, MANY, tmp_path)
    assert done.stdout.splitlines() == ["30 30 8 False 3 7", "True"], done.stderr


@pytest.mark.timeout(240)
def test_a_program_that_takes_far_more_memory_for_them_is_ended(tmp_path):
    greedy = MANY + "    held = [b'x' * (1 << 20) for _ in range(4000)]\n    print('held')\n"
    done, folder = run_under({"many": {}}, greedy, tmp_path)
    assert done.returncode == 1 and "held" not in done.stdout
    assert json.loads((folder / "changed_data.json").read_text()) == {"too_large": True}

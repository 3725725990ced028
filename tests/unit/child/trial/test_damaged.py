"""One sample of the data is another, in a real process."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from unstall.child.trial.damaged import DamagedData

from .test_account import run_under

PROGRAM = """
    import torch
    from torch.utils.data import DataLoader, Dataset, TensorDataset

    class Lines(Dataset):
        def __init__(self, lines, scale):
            self.words = [line.split() for line in lines]

        def __len__(self):
            return len(self.words)

        def __getitem__(self, index):
            return self.words[index]

    lines = [f"{number}/A" for number in range(9)]
    data = Lines(lines, scale=[1, 2])
    others = Lines([f"{number}/B" for number in range(9)], 1)
    print([len(words) for words in data.words], data.words[4][0], others.words[4])
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("plan", "length", "words"),
    [
        ({"kind": "spoiled"}, 1, "4/A? ['4/B']"),
        ({"kind": "long", "which": 0}, 16, "4/A ['4/B']"),
        ({"kind": "spoiled", "which": 1}, 1, "4/A ['4/B?']"),
        ({"kind": "spoiled", "which": None}, 1, "4/A? ['4/B?']"),
    ],
)
def test_a_text_of_one_dataset_is_damaged_before_it_is_made(tmp_path, plan, length, words):
    done, folder = run_under({"damaged": plan}, PROGRAM, tmp_path)
    lengths = [1] * 9
    lengths[4] = length
    assert done.stdout.strip() == f"{lengths} {words}", done.stderr
    told = json.loads((folder / "changed_data.json").read_text())
    assert told["is_text"] and isinstance(told["item"], str)


def damaged(tmp_path, value, kind="spoiled"):
    damage = DamagedData(kind, 0, str(tmp_path))
    (tmp_path / "changed_data.json").unlink(missing_ok=True)
    damage.one_of([3, "settings", [1, 2], value])
    return (tmp_path / "changed_data.json").exists()


@pytest.mark.parametrize("value", [torch.ones(9, 2), np.ones((9, 2), np.float32)])
def test_a_row_of_numbers_is_none_any_more(tmp_path, value):
    assert damaged(tmp_path, value)
    assert np.isnan(np.asarray(value)).any(axis=1).tolist() == [number == 4 for number in range(9)]
    assert not damaged(tmp_path, value, "long")


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("joined", "a/O the/DET 1,5/NUM", "a/O theDET 1,5/NUM"),
        ("short", "a/O the/DET 1,5/NUM", "a/O"),
        ("cut", "a/O the/DET 1,5/NUM", "a/O the/DET 1,5/NU"),
        ("foreign", "7 The cat sat", "7  Éłe cat sat"),
        ("foreign", "a/O the/DET 1,5/NUM", "a/O  t/éł/DET 1,5/NUM"),
    ],
)
def test_a_text_is_other_than_it_usually_is(tmp_path, kind, text, wanted):
    value = [(0, text)] * 9
    assert damaged(tmp_path, value, kind)
    assert value[4] == (0, wanted) and value[3] == (0, text)
    assert damaged(tmp_path, ["7"] * 9, kind) == (kind == "cut")
    assert not damaged(tmp_path, [1.5] * 9, kind)


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda n: (f"picture {n}", [(n, 0), (n, 1)]), ("picture 4", [(n, m) for n in (4, 5, 6, 7) for m in (0, 1)])),
        (lambda n: [n, ([[0.5 * n]],)], [4, ([[2.0], [2.5], [3.0], [3.5]],)]),
        (lambda n: ("boxes or none", [(n,)] if n % 2 == 0 else []), ("boxes or none", [(4,), (6,)])),
        (lambda n: {"boxes": [(n, 2)]}, None),
        (lambda n: ("words", [n, 2]), None),
        (lambda n: ("no boxes", []), None),
        (lambda n: "text", None),
    ],
)
def test_a_sample_has_the_parts_of_others_too(tmp_path, make, wanted):
    value = [make(number) for number in range(9)]
    assert damaged(tmp_path, value, "more") == (wanted is not None)
    assert value[4] == (wanted or make(4)) and value[3] == make(3) and value[5] == make(5)


def test_items_are_damaged_at_their_first_text(tmp_path):
    value = [(number, tmp_path / "a.jpg", "label") for number in range(8)]
    assert damaged(tmp_path, value)
    assert value[4] == (4, tmp_path / "a.jpg?", "label") and value[3][1].name == "a.jpg"


@pytest.mark.parametrize(
    ("item", "wanted"),
    [(("a", [[0, 1, 2], [0, 3, 4]], "b"), ("a", [[0, 1, 2], [0, 3, 4.5]], "b")), (7, 7.5), ((1, True), (1.5, True))],
)
def test_the_last_whole_number_becomes_one_between(tmp_path, item, wanted):
    value = [item] * 9
    assert damaged(tmp_path, value, "between")
    assert value[4] == wanted and value[3] == item
    assert not damaged(tmp_path, [(0.5, "a")] * 9, "between")


@pytest.mark.parametrize("value", [[1] * 9, ["a"] * 3, torch.ones(9, dtype=torch.long), torch.tensor(1.0), None])
def test_what_nobody_knows_how_to_damage_is_left(tmp_path, value):
    assert not damaged(tmp_path, value)


OWN = """
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Rows(Dataset):
        def __init__(self, seed):
            self.x = torch.zeros(9, 2)

        def __len__(self):
            return len(self.x)

        def __getitem__(self, index):
            return self.x[index]

    train, valid = Rows(0), Rows(1)
    for rows in (train, train, valid):
        print(int(next(iter(DataLoader(rows, batch_size=9))).isnan().sum()))
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("which", "counts"), [(0, ["2", "2", "0"]), (1, ["0", "0", "2"])])
def test_what_a_dataset_has_made_itself_is_damaged_when_a_loader_gets_it(tmp_path, which, counts):
    done, folder = run_under({"damaged": {"kind": "spoiled", "which": which}}, OWN, tmp_path)
    assert done.stdout.split() == counts, done.stderr
    assert (folder / "changed_data.json").exists()

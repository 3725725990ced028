"""What is stacked in shared memory is what torch.stack makes."""

from __future__ import annotations

import pytest

from unstall.optimize.remedies import shared_batches
from unstall.optimize.remedies.shared_batches import with_shared
from unstall.optimize.sources import SourceError, Sources

torch = pytest.importorskip("torch")

COLLATE = """import torch
from torch.utils.data import DataLoader, Dataset


def collate(items):
    images = torch.stack([image for image, _ in items])  # the batch
    masks = torch.stack([mask for _, mask in items], dim=0)
    return images, masks, torch.stack([images, images], 1)


class Images(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return torch.full((2, 3), float(i)), torch.arange(4) + i


def loader(workers):
    return DataLoader(Images(), batch_size=3, num_workers=workers, collate_fn=collate)
"""


def written(tmp_path, text=COLLATE, name="collate", line=5):
    path = tmp_path / "collate.py"
    path.write_text(text)
    sources, lines = with_shared(Sources(), path, name, line)
    return sources.bytes_of(path).decode(), lines


def test_stacks_along_the_first_axis_are_changed(tmp_path):
    text, lines = written(tmp_path)
    assert lines == {6, 7}
    assert "    images = _stacked([image for image, _ in items])  # the batch\n" in text
    assert "    masks = _stacked([mask for _, mask in items])\n" in text
    assert "torch.stack([images, images], 1)" in text


def test_what_is_not_there_or_named_otherwise_is_refused(tmp_path):
    with pytest.raises(SourceError, match="stacks no tensors"):
        written(tmp_path, name="loader", line=19)
    with pytest.raises(SourceError, match="not found"):
        written(tmp_path, name="gone", line=5)
    with pytest.raises(SourceError, match="_stacked"):
        written(tmp_path, COLLATE + "_stacked = 1\n")


@pytest.mark.parametrize("workers", [0, 2])
def test_the_loader_gives_the_same(tmp_path, monkeypatch, workers):
    text, _ = written(tmp_path)
    before, after = {}, {}
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "one_way.py").write_text(COLLATE)
    (tmp_path / "other_way.py").write_text(text)
    import one_way
    import other_way

    before, after = list(one_way.loader(workers)), list(other_way.loader(workers))
    assert len(before) == len(after) == 2
    for one, other in zip(before, after):
        for a, b in zip(one, other):
            assert a.dtype == b.dtype and torch.equal(a, b)
            assert b.is_shared() is (workers > 0)


@pytest.mark.parametrize(
    "parts",
    [
        [torch.ones(2), torch.zeros(2)],
        (torch.ones(2, dtype=torch.int8), torch.zeros(2, dtype=torch.int8)),
        [torch.ones(2), torch.zeros(2, dtype=torch.float64)],
        [torch.ones(2, requires_grad=True), torch.zeros(2)],
        [torch.tensor(1.5), torch.tensor(2.5)],
        torch.arange(6).reshape(3, 2),
        [torch.ones(2), torch.ones(3)],
        [],
    ],
)
def test_the_helper_does_what_stack_does(parts):
    scope = {"torch": torch}
    exec(shared_batches.DEFINITION, scope)

    def outcome(stack):
        try:
            made = stack(parts)
        except (RuntimeError, TypeError, IndexError):
            return "refused"
        return made.dtype, made.requires_grad, made.tolist()

    assert outcome(scope["_stacked"]) == outcome(torch.stack)

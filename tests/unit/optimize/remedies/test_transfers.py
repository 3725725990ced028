"""Copies to a device that are not waited for, and gradients exchanged less often: what is written, and where not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from unstall.optimize.case import Unfit
from unstall.optimize.remedies import async_copies, gradient_sync
from unstall.optimize.sources import Sources


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = x.to(device)  # over", "x = x.to(device, non_blocking=True)  # over"),
        ("x, y = x.cuda(), y.cuda(0)", "x, y = x.cuda(non_blocking=True), y.cuda(0, non_blocking=True)"),
        ('x = x.to("cuda:1")', 'x = x.to("cuda:1", non_blocking=True)'),
        ("x = x.to(self.device, torch.float32)", "x = x.to(self.device, torch.float32, non_blocking=True)"),
        ('x = x.to("cpu")', None),
        ("x = x.to(torch.float16)", None),
        ("x = x.to(device, non_blocking=False)", None),
        ("x = x.cpu()", None),
    ],
)
def test_only_copies_to_a_device_need_not_be_waited_for(tmp_path, before, after):
    path = tmp_path / "train.py"
    path.write_text(f"import torch\n\n{before}\n")
    sources, changed = async_copies.with_non_blocking(Sources(), path, 3)
    assert changed is (after is not None)
    assert sources.bytes_of(path).decode() == f"import torch\n\n{after or before}\n"


def test_without_a_gpu_there_is_nothing_to_tell():
    case = SimpleNamespace(measurement=SimpleNamespace(model=SimpleNamespace(device="cpu")))
    assert isinstance(async_copies.propose(case), Unfit)


TRAIN = """import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(build(), device_ids=None)
for step, (x, y) in enumerate(loader):
    loss = model(x).mean()
    loss.backward()
    if (step + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""


def test_keywords_of_the_wrapper(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    changed = gradient_sync.with_keyword(Sources(), path, "gradient_as_bucket_view", "True")
    assert b"DDP(build(), device_ids=None, gradient_as_bucket_view=True)" in changed.bytes_of(path)
    assert gradient_sync.with_keyword(changed, path, "gradient_as_bucket_view", "True") is None


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("", "", 8),
        ("(step + 1) % 4 == 0", "loss < 1", None),
        ("    loss.backward()\n", "    with model.no_sync():\n        loss.backward()\n", None),
        ("        optimizer.step()\n", "        loss.backward()\n        optimizer.step()\n", None),
    ],
)
def test_where_gradients_only_accumulate(tmp_path, old, new, line):
    path = tmp_path / "train.py"
    path.write_text(TRAIN.replace(old, new) if old else TRAIN)
    assert gradient_sync.accumulates(Sources(), path) == line

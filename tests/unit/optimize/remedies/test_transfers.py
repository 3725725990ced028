"""Copies to a device that are not waited for: what is written, and where not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from unstall.optimize.case import Unfit
from unstall.optimize.remedies import async_copies
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

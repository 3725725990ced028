"""Copies to a device that are not waited for: what is written, and where not."""

from __future__ import annotations

import pytest
from optimize_builders import make_context, make_module

from unstall.optimize.remedies import async_copies
from unstall.optimize.remedies.base import NotApplicable


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
def test_only_copies_to_a_device_need_not_be_waited_for(before, after):
    module = make_module(f"import torch\n\n{before}\n")
    tree = async_copies.with_non_blocking(module, 3)
    assert (tree is module.tree) is (after is None)
    assert tree.code == f"import torch\n\n{after or before}\n"


def test_without_a_gpu_there_is_nothing_to_tell():
    with pytest.raises(NotApplicable, match="no GPU"):
        async_copies.REMEDY.propose(make_context())

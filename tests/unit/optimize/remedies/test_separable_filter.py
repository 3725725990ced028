"""Filters that are products go along one axis after the other, with the same results but for rounding; others stay."""

from __future__ import annotations

import libcst as cst
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from optimize_builders import make_context, make_module, make_report

from unstall.optimize.remedies.separable_filter import REMEDY
from unstall.optimize.rewrites.separable_filter import by_axes, channel_filters
from unstall.optimize.runtime.separable_filter import _SeparableFilter
from unstall.optimize.source.errors import NotApplicable
from unstall.records.report import Hotspot

BLUR = """import torch
import torch.nn.functional as F


def window(size, channels):
    line = torch.exp(-((torch.arange(size) - size // 2) ** 2) / 4.5)
    line = line / line.sum()
    return (line[:, None] * line[None, :]).expand(channels, 1, size, size).contiguous()


def blur(images, size=11):
    weight = window(size, images.shape[1])
    return F.conv2d(images, weight, padding=size // 2, groups=images.shape[1])


def mixed(images, weight):
    return F.conv2d(images, weight, padding=1)
"""


class Counted:
    """conv2d, and the filters that it was called with."""

    def __init__(self):
        self.shapes = []

    def __call__(self, images, weight, *given):
        self.shapes.append(tuple(weight.shape[2:]))
        return torch.nn.functional.conv2d(images, weight, *given)


def gaussian(channels, height, width):
    up, along = (torch.exp(-((torch.arange(size) - size / 2) ** 2) / 6.0) for size in (height, width))
    scale = 1 + torch.arange(channels).float()
    return scale[:, None, None, None] * (up[:, None] * along[None, :]).expand(channels, 1, height, width)


@settings(deadline=None, max_examples=40)
@given(
    channels=st.integers(1, 3), height=st.integers(3, 7), width=st.integers(3, 7), stride=st.sampled_from([1, 2, (1, 2)]),
    padding=st.sampled_from([0, 2, (1, 3)]), dilation=st.sampled_from([1, (2, 1)]), bias=st.booleans(),
)  # fmt: skip
def test_a_product_gives_the_same_but_for_rounding(channels, height, width, stride, padding, dilation, bias):
    images = torch.randn(2, channels, 17, 15, requires_grad=True)
    options = (torch.randn(channels) if bias else None, stride, padding, dilation, channels)
    weight, counted = gaussian(channels, height, width), Counted()
    wanted = torch.nn.functional.conv2d(images, weight, *options)
    got = _SeparableFilter.apply(counted, images, weight, *options)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)
    assert counted.shapes == [(height, 1), (1, width)]
    gradients = [torch.autograd.grad(result.sum(), images, retain_graph=True)[0] for result in (got, wanted)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("weight", "given"),
    [
        (torch.randn(3, 1, 5, 5), {}),  # no product
        (gaussian(3, 5, 5).requires_grad_(), {}),  # it learns
        (gaussian(3, 5, 5) * torch.tensor([1.0, 0.0, 1.0]).view(3, 1, 1, 1), {}),  # one is empty
        (gaussian(3, 5, 5), {"padding": "same"}),
        (gaussian(3, 1, 5), {}),  # one axis alone
        (gaussian(6, 5, 5), {}),  # two filters for each channel, which is as well
    ],
)
def test_any_other_filter_is_applied_as_it_is(weight, given):
    images, counted = torch.randn(2, 3, 9, 9), lambda *args: torch.nn.functional.conv2d(*args)
    groups = 3 if len(weight) != 1 else 1
    wanted = torch.nn.functional.conv2d(images, weight, groups=groups, **given)
    torch.testing.assert_close(_SeparableFilter.apply(counted, images, weight, groups=groups, **given), wanted)


def rewritten(name):
    module = make_module(BLUR)
    (function,) = (found for found in module.all(cst.FunctionDef) if found.name.value == name)
    calls = list(channel_filters(module, function))
    return by_axes(module, calls).code if calls else BLUR


def test_the_call_is_given_on_with_all_that_it_is_given():
    changed = rewritten("blur")
    assert "_SeparableFilter.apply(F.conv2d, images, weight, padding=size // 2, groups=images.shape[1])" in changed
    assert rewritten("mixed") == BLUR
    spaces: list[dict] = [{}, {}]
    for text, space in zip((BLUR, changed), spaces):
        exec(compile(text, "blur.py", "exec"), space)
    images = torch.randn(2, 3, 20, 20)
    torch.testing.assert_close(spaces[1]["blur"](images), spaces[0]["blur"](images))


def context(tmp_path, snippet):
    (tmp_path / "train.py").write_text(BLUR)
    line = 1 + next(at for at, text in enumerate(BLUR.splitlines()) if snippet in text)
    spot = Hotspot(function="blur", file=str(tmp_path / "train.py"), line=line, share=0.7, phase="forward")
    shares = {"forward": 0.8, "backward": 0.2}
    return make_context(tmp_path, report=make_report(hotspots=[spot], phases=shares), phases=shares)


def test_a_hot_filter_is_proposed_and_another_hot_line_is_not(tmp_path):
    (proposal,) = REMEDY.propose(context(tmp_path, "groups=images"))
    assert "blur filters along one axis after the other (train.py:13)" in proposal.title and proposal.predicted > 1.3
    with pytest.raises(NotApplicable):
        REMEDY.propose(context(tmp_path, "weight = window"))

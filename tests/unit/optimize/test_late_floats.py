"""Floats made last: what is taken away from the sample gives the same when it is done to the batch."""

from __future__ import annotations

import ast
import re
import textwrap

import pytest

from unstall.optimize.batches import NotClear
from unstall.optimize.late_floats import find

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

FRAME = """import numpy as np
import torch

MEAN = torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1)
STD = np.array([0.2, 0.3, 0.4], dtype=np.float32)
SCALE = 255.0
changed = torch.ones(3)
changed = changed + 1


class Images:
    def __getitem__(self, index):
{body}
"""
IMAGES = np.random.default_rng(0).integers(0, 256, (4, 5, 6, 3), dtype=np.uint8)


def frame(body):
    text = FRAME.replace("{body}", textwrap.indent(textwrap.dedent(body).strip(), " " * 8))
    return text, next(number for number, one in enumerate(text.splitlines(), 1) if "__getitem__" in one)


def samples(text):
    """The first part of each sample, in a batch."""
    space = {}
    exec(text, space)
    images = space["Images"]()
    images.images = IMAGES
    made = [images[index] for index in range(len(IMAGES))]
    return torch.stack([torch.as_tensor(one[0] if type(one) is tuple else one) for one in made]), space


def without(text, late):
    """The source with the edits made, one at a time from the end: they do not overlap."""
    lines = text.split("\n")
    for edit in sorted(late.edits, key=lambda one: -one.node.lineno):
        node = edit.node
        assert node.lineno == node.end_lineno
        line = lines[node.lineno - 1]
        lines[node.lineno - 1] = line[: node.col_offset] + edit.source + line[node.end_col_offset :]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("body", "steps"),
    [
        ("return torch.from_numpy(self.images[index]).float() / 255, index", "x.float() / 255"),
        ("return torch.from_numpy(self.images[index]).float().div(255.0)", "x.float() / 255.0"),
        ("return torch.from_numpy(self.images[index]) / 255, index", "x / 255"),
        ("return self.images[index].astype(np.float32) / 255, index", "x.float() / 255"),
        ("return np.asarray(self.images[index], dtype=np.float32) * (1 / 255), 0", "x.float() * (1 / 255)"),
        ("return np.float32(self.images[index, ::-1]) / SCALE", "x.float() / SCALE"),
        ("return torch.from_numpy(self.images[index].astype('float32') / 255).permute(2, 0, 1)", "x.float() / 255"),
        ("return torch.tensor(self.images[index], dtype=torch.float32).sub(127.5) / 127.5, 1",
         "(x.float() - 127.5) / 127.5"),
        ("return torch.from_numpy(self.images[index] / 255.0).float()", "x.float() / 255.0"),
        ("""
         x = torch.from_numpy(self.images[index]).permute(2, 0, 1)
         x = x.to(torch.float32) / 255  # to [0, 1]
         label = index % 2
         x = (x - MEAN) / torch.tensor([0.2, 0.3, 0.4])[:, None, None]
         return x, label
         """,
         "(x.float() / 255 - torch.as_tensor(MEAN).to(x.device, non_blocking=True)) / "
         "torch.as_tensor(torch.tensor([0.2, 0.3, 0.4])[:, None, None]).to(x.device, non_blocking=True)"),
        ("""
         image = np.flip(self.images[index], 1)
         x = image.astype(np.float32)
         x /= 255
         x -= 0.5
         x = x / STD
         return torch.from_numpy(x), index
         """,
         None),
        ("""
         image = np.flip(self.images[index], 1)
         x = image.astype(np.float32)
         x /= 255
         x -= 0.5
         x = x * 2 + 1
         return torch.from_numpy(x).permute(2, 0, 1), index
         """,
         "(x.float() / 255 - 0.5) * 2 + 1"),
        ("""
         x = np.asarray(self.images[index, ::-1]) / 255.0
         x = torch.from_numpy(x).float()
         return x
         """,
         "x.float() / 255.0"),
        ("""
         x = self.images[index]
         x = x.astype(np.float32) / 255
         return (x - 0.5) / STD
         """,
         "(x.float() / 255 - 0.5) / torch.as_tensor(STD).to(x.device, non_blocking=True)"),
    ],
)  # fmt: skip
def test_the_batch_comes_out_as_its_samples_did(body, steps):
    text, line = frame(body)
    if steps is None:
        with pytest.raises(NotClear):
            find(text, line)
        return
    late = find(text, line)
    assert late.applied_to("x") == steps
    changed = without(text, late)
    compile(changed, "changed", "exec")
    wanted, _ = samples(text)
    sent, space = samples(changed)
    assert sent.dtype == torch.uint8
    got = eval(late.applied_to("sent"), {**space, "sent": sent})
    assert got.dtype == wanted.dtype == torch.float32 and got.shape == wanted.shape
    if "] / 255.0" in body or ") / 255.0\n" in body:  # NumPy divides in double precision
        assert torch.allclose(got, wanted, rtol=2e-7, atol=0)
    else:
        assert torch.equal(got, wanted)


def test_the_part_is_known_by_its_place_or_name():
    for body, key, parts in [
        ("return index, torch.from_numpy(self.images[index]).float() / 255", 1, 2),
        ("return {'id': index, 'image': torch.from_numpy(self.images[index]).float() / 255}", "image", 2),
        ("return torch.from_numpy(self.images[index]).float() / 255", None, 1),
    ]:
        late = find(*frame(body))
        assert (late.key, late.parts, late.cls) == (key, parts, "Images")


@pytest.mark.parametrize(
    "body",
    [
        "return self.images[index], index",
        "return torch.from_numpy(self.images[index]).float(), index",
        "return torch.from_numpy(self.images[index]).double() / 255",
        "return self.images[index] / 255",
        "return torch.from_numpy(self.images[index]).float() / self.scale",
        "return torch.from_numpy(self.images[index]).float() / changed",
        "SCALE = index\n return torch.from_numpy(self.images[index]).float() / SCALE".replace("\n ", "\n"),
        "return torch.from_numpy(self.images[index]).float() + torch.randn(3)",
        "return 255 / torch.from_numpy(self.images[index]).float()",
        "x = torch.from_numpy(self.images[index]).float() / 255\nreturn x, x.mean()",
        "x = torch.from_numpy(self.images[index]).float() / 255\nm = x.mean()\nreturn x, m",
        "x = torch.from_numpy(self.images[index]).float() / 255\nif m:\n    x = x.flip(1)\nreturn x, m",
        "x = torch.from_numpy(self.images[index]).float() / 255\nx = self.augment(x)\nreturn x",
        "if index:\n    return torch.from_numpy(self.images[index]).float() / 255\nreturn 1",
        "print(index)",
    ],
)
def test_what_is_something_else_stays(body):
    with pytest.raises(NotClear):
        find(*frame(body))


def test_samples_that_are_kept_are_kept_as_bytes():
    text, line = frame("return self.samples_kept.get(self._load_sample, index)")
    text += "\n    def _load_sample(self, index):\n        return torch.from_numpy(self.images[index]).float() / 255\n"
    late = find(text, line)
    assert late.lines[0] > line and re.search(r"_load_sample\(self", text.splitlines()[late.lines[0] - 2])
    assert isinstance(late.edits[0].node, ast.expr)

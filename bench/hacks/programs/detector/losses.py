"""Anchors, which box each is to find, and the loss."""

import torch
from data import SIZE
from torch import nn

STRIDE, BACKGROUND = 4, 3
POSITIVE, NEGATIVE, IGNORED = 0.375, 0.25, -1
WEIGHTS = torch.tensor([1.0, 1.0, 1.0, 0.15])


def make_anchors():
    """(A, 4) corners in pixels: squares of 10 pixels, one at every stride."""
    centres = torch.arange(STRIDE / 2, SIZE, STRIDE)
    y, x = torch.meshgrid(centres, centres, indexing="ij")
    x, y = x.flatten(), y.flatten()
    return torch.stack([x - 5, y - 5, x + 5, y + 5], 1)


ANCHORS = make_anchors()


def overlap(a, b):
    """Intersection over union of two boxes (4)."""
    width = torch.minimum(a[2], b[2]) - torch.maximum(a[0], b[0])
    height = torch.minimum(a[3], b[3]) - torch.maximum(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared
    return float(shared / union)


def match(boxes, labels):
    """Of each anchor: the class it is to say (A), and how far the corners of its box are off (A, 4)."""
    classes = torch.full((len(ANCHORS),), BACKGROUND)
    offsets = torch.zeros(len(ANCHORS), 4)
    for number, anchor in enumerate(ANCHORS):
        overlaps = [overlap(anchor, box) for box in boxes]
        best = max(range(len(overlaps)), key=overlaps.__getitem__)
        if overlaps[best] >= POSITIVE:
            classes[number] = labels[best]
            offsets[number] = (boxes[best] - anchor) / 10
        elif overlaps[best] >= NEGATIVE:
            classes[number] = IGNORED
    return classes, offsets


def detection_loss(scores, moves, boxes, labels):
    """Of scores (B, A, C + 1) and moves (B, A, 4): cross entropy and smooth L1, each a mean."""
    classes, offsets = zip(*[match(*pair) for pair in zip(boxes, labels, strict=True)], strict=True)
    classes, offsets = torch.stack(classes), torch.stack(offsets)
    positive = (classes >= 0) & (classes < BACKGROUND)
    naming = nn.functional.cross_entropy(scores.flatten(0, 1), classes.flatten(), WEIGHTS, ignore_index=IGNORED)
    placing = nn.functional.smooth_l1_loss(moves[positive], offsets[positive], reduction="sum")
    return naming + placing / max(1, int(positive.sum()))

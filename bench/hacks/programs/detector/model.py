"""A small one-stage detector: a backbone with a stride of 4, two heads, an average of its weights."""

import copy

import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self, classes, width=24):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, 1, 1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.Dropout2d(0.05),
        )  # fmt: skip
        self.scores = nn.Conv2d(2 * width, classes + 1, 3, 1, 1)
        self.moves = nn.Conv2d(2 * width, 4, 3, 1, 1)

    def forward(self, images):
        features = self.backbone(images)
        return self.scores(features).flatten(2).mT, self.moves(features).flatten(2).mT


class Average:
    """An exponential moving average of a model, for validation."""

    def __init__(self, model, decay=0.8):
        self.model = copy.deepcopy(model).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for ours, theirs in zip(self.model.state_dict().values(), model.state_dict().values(), strict=True):
            if ours.is_floating_point():
                ours.lerp_(theirs, 1 - self.decay)
            else:
                ours.copy_(theirs)

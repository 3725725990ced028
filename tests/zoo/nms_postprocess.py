"""Detector inference. Planted: non-maximum suppression in pure Python after the network."""

import numpy as np
import torch
from common import Clock, parse_args, photo_folder
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Frames(Dataset):
    def __init__(self, files):
        self.images = [np.asarray(Image.open(f)) for f in files]

    def __len__(self):
        return 100_000

    def __getitem__(self, i):
        image = self.images[i % len(self.images)]
        return torch.from_numpy(image.transpose(2, 0, 1) / np.float32(255))


class Detector(nn.Module):
    """Predicts a box and a score for each cell of a 16×16 grid."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(32, 32, 3, stride=2, padding=1), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Conv2d(32, 5, 1)
        cells = (torch.arange(16) + 0.5) * 8
        self.register_buffer("centres", torch.stack(torch.meshgrid(cells, cells, indexing="xy")))

    def forward(self, images):
        out = self.head(self.backbone(images))
        centre = self.centres + 4 * out[:, 0:2].tanh()
        half = 10 * out[:, 2:4].exp()
        boxes = torch.cat([centre - half, centre + half], dim=1).flatten(2).transpose(1, 2)
        return boxes, out[:, 4].flatten(1).sigmoid()


def iou(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    areas = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
    return shared / (areas - shared)


def nms(boxes, scores, threshold=0.7):
    boxes, scores = boxes.tolist(), scores.tolist()
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    keep = []
    for i in order:
        if all(iou(boxes[i], boxes[j]) < threshold for j in keep):
            keep.append(i)
    return keep


def nms_matrix(boxes, scores, threshold=0.7):
    order = scores.argsort(descending=True)
    boxes = boxes[order]
    corner = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    size = (torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:]) - corner).clamp(min=0)
    shared = size.prod(-1)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    close = (shared / (area[:, None] + area - shared) >= threshold).numpy()
    alive = np.ones(len(order), dtype=bool)
    for i in range(len(order)):
        if alive[i]:
            alive[i + 1 :] &= ~close[i, i + 1 :]
    return order[torch.from_numpy(alive)].tolist()


def detect(detector, frames, suppress, clock):
    found = 0
    for images in frames:
        with torch.no_grad():
            boxes, scores = detector(images)
        for image_boxes, image_scores in zip(boxes, scores):
            found += len(suppress(image_boxes, image_scores))
        clock.tick()
        if clock.done:
            return found


if __name__ == "__main__":
    args = parse_args()
    torch.manual_seed(3)
    frames = DataLoader(Frames(sorted(photo_folder(128, 24).glob("*/*.jpg"))), batch_size=8)
    clock = Clock(args.seconds)
    suppress = nms if args.variant == "slow" else nms_matrix
    print("boxes", detect(Detector().eval(), frames, suppress, clock))
    clock.report()

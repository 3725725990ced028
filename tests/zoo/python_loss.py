"""A toy detector's training. Planted: anchors are matched to boxes by Python loops inside the loss; the
fixed twin matches them with tensors."""

import torch
from common import Clock, parse_args
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Scenes(Dataset):
    """Bright rectangles on noise, with their boxes as fractions of the side."""

    def __init__(self, count=512):
        generator = torch.Generator().manual_seed(8)
        self.scenes = [self.draw(generator) for _ in range(count)]

    def draw(self, generator):
        image = torch.rand(1, 64, 64, generator=generator) * 0.3
        size = 8 + (torch.rand(4, 2, generator=generator) * 16).int()
        corner = (torch.rand(4, 2, generator=generator) * (64 - size)).int()
        for (x, y), (w, h) in zip(corner.tolist(), size.tolist()):
            image[:, y : y + h, x : x + w] = 1.0
        return image, torch.cat([corner, corner + size], dim=1) / 64

    def __len__(self):
        return len(self.scenes)

    def __getitem__(self, index):
        return self.scenes[index]


def make_anchors(cells=8, scales=(0.15, 0.2, 0.3, 0.4)):
    centre = (torch.arange(cells) + 0.5) / cells
    grid = torch.cartesian_prod(centre, centre)
    return torch.cat([torch.cat([grid - s / 2, grid + s / 2], dim=1) for s in scales])


class AnchorLoss(nn.Module):
    def __init__(self, anchors, threshold=0.4):
        super().__init__()
        self.register_buffer("anchors", anchors)
        self.threshold = threshold

    def match(self, boxes):
        target = torch.zeros(len(boxes), len(self.anchors))
        anchors = self.anchors.tolist()
        for b, image_boxes in enumerate(boxes.tolist()):
            for a, (ax1, ay1, ax2, ay2) in enumerate(anchors):
                for x1, y1, x2, y2 in image_boxes:
                    width = min(ax2, x2) - max(ax1, x1)
                    height = min(ay2, y2) - max(ay1, y1)
                    if width > 0 and height > 0:
                        shared = width * height
                        union = (ax2 - ax1) * (ay2 - ay1) + (x2 - x1) * (y2 - y1) - shared
                        if shared / union > self.threshold:
                            target[b, a] = 1.0
        return target

    def forward(self, logits, boxes):
        return nn.functional.binary_cross_entropy_with_logits(logits, self.match(boxes))


class TensorAnchorLoss(AnchorLoss):
    def match(self, boxes):
        anchors, boxes = self.anchors[None, :, None], boxes[:, None]
        corner = torch.maximum(anchors[..., :2], boxes[..., :2])
        shared = (torch.minimum(anchors[..., 2:], boxes[..., 2:]) - corner).clamp(min=0).prod(-1)
        areas = (anchors[..., 2:] - anchors[..., :2]).prod(-1)
        areas = areas + (boxes[..., 2:] - boxes[..., :2]).prod(-1)
        return (shared / (areas - shared) > self.threshold).any(-1).float()


class AnchorNet(nn.Module):
    def __init__(self, anchors_per_cell=4):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(32, anchors_per_cell, 3, stride=2, padding=1)

    def forward(self, x):
        return self.conv3(self.conv2(self.conv1(x).relu()).relu()).flatten(1)


def main():
    args = parse_args()
    loss_class = AnchorLoss if args.variant == "slow" else TensorAnchorLoss
    criterion = loss_class(make_anchors())
    model = AnchorNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loader = DataLoader(Scenes(), batch_size=16, shuffle=True)
    clock = Clock(args.seconds)
    while not clock.done:
        for images, boxes in loader:
            loss = criterion(model(images), boxes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                break
    print(f"loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()

"""Planted: a denoising transform in pure Python, in two workers that fight the model for the cores."""

import random
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from common import Clock, parse_args, photo_folder
from PIL import Image, ImageFilter
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Compose:
    def __init__(self, *transforms):
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class RandomFlip:
    def __call__(self, image):
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if random.random() < 0.5 else image


class Despeckle:
    """3×3 median of the brightness, pixel by pixel."""

    def __call__(self, image):
        grey = image.convert("L")
        rows = np.asarray(grey).tolist()
        out = [row[:] for row in rows]
        for y in range(1, len(rows) - 1):
            above, here, below = rows[y - 1], rows[y], rows[y + 1]
            for x in range(1, len(here) - 1):
                window = above[x - 1 : x + 2] + here[x - 1 : x + 2] + below[x - 1 : x + 2]
                window.sort()
                out[y][x] = window[4]
        return Image.fromarray(np.array(out, dtype=np.uint8))


class DespeckleFilter:
    def __call__(self, image):
        return image.convert("L").filter(ImageFilter.MedianFilter(3))


class ToTensor:
    def __call__(self, image):
        return torch.from_numpy(np.array(image)).float().div_(255).unsqueeze(0)


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, tensor):
        return (tensor - self.mean) / self.std


class ImageFolder(Dataset):
    def __init__(self, root: Path, transform):
        self.transform = transform
        classes = sorted(p.name for p in root.iterdir())
        self.samples = [(f, i) for i, c in enumerate(classes) for f in sorted((root / c).iterdir())]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        with Image.open(path) as image:
            return self.transform(image.convert("RGB")), label


class SmallResNet(nn.Module):
    def __init__(self, width=32, num_classes=7):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, stride=2, padding=1)
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = x + self.conv2(F.relu(self.conv1(x)))
        return self.head(F.relu(x).mean((2, 3)))


if __name__ == "__main__":
    args = parse_args()
    despeckle = Despeckle() if args.variant == "slow" else DespeckleFilter()
    transform = Compose(RandomFlip(), despeckle, ToTensor(), Normalize(0.45, 0.25))
    dataset = ImageFolder(photo_folder(64, 800), transform)
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=2, drop_last=True, persistent_workers=True)
    model = SmallResNet()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    epoch = 0
    while not clock.done:
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            clock.tick()
            if clock.done:
                break
        epoch += 1
        print(f"epoch {epoch}: loss {loss.item():.4f}")
    clock.report()

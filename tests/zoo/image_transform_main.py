"""Classifies photographs. Planted: a per-pixel colour shift in pure Python, in the main process."""

import colorsys
import random

import numpy as np
import torch
from common import Clock, parse_args, photo_folder
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


def shift_hue(image):
    shift = random.uniform(-0.1, 0.1)
    pixels = image.load()
    for y in range(image.height):
        for x in range(image.width):
            r, g, b = pixels[x, y]
            h, s, v = colorsys.rgb_to_hsv(r / 255, g / 255, b / 255)
            r, g, b = colorsys.hsv_to_rgb((h + shift) % 1.0, s, v)
            pixels[x, y] = int(r * 255), int(g * 255), int(b * 255)
    return image


def shift_hue_array(image):
    shift = random.randint(-25, 25)
    hsv = np.array(image.convert("HSV"))
    hsv[..., 0] += np.uint8(shift % 256)
    return Image.fromarray(hsv, "HSV").convert("RGB")


class PhotoDataset(Dataset):
    def __init__(self, root, augment):
        self.files = sorted(root.glob("*/*.jpg"))
        self.classes = sorted({f.parent.name for f in self.files})
        self.augment = augment

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        file = self.files[index]
        image = self.augment(Image.open(file).convert("RGB"))
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255
        return pixels, self.classes.index(file.parent.name)


def build_model(num_classes):
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, num_classes),
    )


def main():
    args = parse_args()
    torch.manual_seed(0)
    augment = shift_hue if args.variant == "slow" else shift_hue_array
    dataset = PhotoDataset(photo_folder(64, 400), augment)
    loader = DataLoader(dataset, batch_size=16, shuffle=True)
    model = build_model(len(dataset.classes))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    clock = Clock(args.seconds)
    while not clock.done:
        for images, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                break
        print(f"loss {loss.item():.3f}")
    clock.report()


if __name__ == "__main__":
    main()

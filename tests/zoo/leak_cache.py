"""Predicts the next patch of pixels. Planted: a dataset's cache keyed by the random crop, which never
hits and never forgets; the fixed twin caches the photographs only."""

import random

import numpy as np
import torch
from common import Clock, parse_args, photo_folder
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


class CropDataset(Dataset):
    def __init__(self, root, size=96, keep_crops=False):
        self.files = sorted(root.glob("*/*.jpg"))
        self.size = size
        self.keep_crops = keep_crops
        self.photos = {}
        self.crops = {}

    def __len__(self):
        return len(self.files)

    def photo(self, index):
        if index not in self.photos:
            self.photos[index] = np.asarray(Image.open(self.files[index]))
        return self.photos[index]

    def crop(self, index, top, left):
        key = index, top, left
        if key not in self.crops:
            window = self.photo(index)[top : top + self.size, left : left + self.size]
            pixels = torch.from_numpy(window.astype(np.float32) / 255).permute(2, 0, 1)
            if not self.keep_crops:
                return pixels
            self.crops[key] = pixels
        return self.crops[key]

    def __getitem__(self, index):
        height, width, _ = self.photo(index).shape
        top = random.randrange(height - self.size + 1)
        left = random.randrange(width - self.size + 1)
        return self.crop(index, top, left)


class Colouriser(nn.Module):
    """From brightness to colour."""

    def __init__(self, width=12):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(width, 3, 2, stride=2),
        )  # fmt: skip

    def forward(self, grey):
        return self.layers(grey)


def main():
    args = parse_args()
    dataset = CropDataset(photo_folder(192, 120), keep_crops=args.variant == "slow")
    loader = DataLoader(dataset, batch_size=24, shuffle=True)
    model = Colouriser()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    while not clock.done:
        for images in loader:
            loss = (model(images.mean(1, keepdim=True)) - images).abs().mean()
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

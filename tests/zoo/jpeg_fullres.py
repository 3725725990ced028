"""Thumbnails of photographs for a small classifier. Planted: the camera's full-size JPEG is decoded
every time; the fixed twin keeps the resized pictures."""

import numpy as np
import torch
from common import Clock, cached, load_photo, parse_args
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE = 64


def make_album(folder):
    for i in range(48):
        name = ("astronaut", "coffee", "chelsea", "china")[i % 4]
        photo = load_photo(name).rotate(i, expand=False).resize((2400, 1600))
        photo.save(folder / f"{name}-{i:03d}.jpg", quality=92)


def make_thumbnails(folder):
    for file in cached("album", make_album).glob("*.jpg"):
        Image.open(file).resize((SIZE, SIZE)).save(folder / file.name, quality=95)


def read_rgb(file):
    image = Image.open(file).convert("RGB")
    if image.size != (SIZE, SIZE):
        image = image.resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    return np.asarray(image, dtype=np.float32) / 255


class Album(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("*.jpg"))
        self.labels = {n: i for i, n in enumerate(sorted({f.name.split("-")[0] for f in self.files}))}

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        file = self.files[i]
        image = torch.from_numpy(read_rgb(file).transpose(2, 0, 1).copy())
        return image, self.labels[file.name.split("-")[0]]


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 24, 5, stride=2), nn.ReLU(), nn.Conv2d(24, 48, 3, stride=2), nn.ReLU()
        )
        self.fc = nn.Linear(48, classes)

    def forward(self, x):
        return self.fc(self.features(x).mean(dim=(-1, -2)))


def train(model, loader, clock):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    loss_fn = nn.CrossEntropyLoss()
    while True:
        for images, labels in loader:
            optimizer.zero_grad()
            loss_fn(model(images), labels).backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                return


def main():
    args = parse_args()
    if args.variant == "slow":
        folder = cached("album", make_album)
    else:
        folder = cached("album-thumbnails", make_thumbnails)
    dataset = Album(folder)
    loader = DataLoader(dataset, batch_size=4, shuffle=True, num_workers=1, persistent_workers=True)
    model = Classifier(len(dataset.labels))
    clock = Clock(args.seconds)
    train(model, loader, clock)
    clock.report()


if __name__ == "__main__":
    main()

"""A convolutional network fed by two workers with small photographs. Nothing is planted; the variants
differ in how often they validate."""

import numpy as np
import torch
from common import Clock, parse_args, photo_folder
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Photos(Dataset):
    def __init__(self, root):
        self.files = sorted(root.glob("*/*.jpg"))
        self.labels = {name: i for i, name in enumerate(sorted({f.parent.name for f in self.files}))}

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        file = self.files[index]
        with Image.open(file) as image:
            pixels = torch.from_numpy(np.array(image))
        return pixels.permute(2, 0, 1).float().div_(255), self.labels[file.parent.name]


class ConvNet(nn.Module):
    def __init__(self, classes, width=32):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.ReLU(),
        )  # fmt: skip
        self.classify = nn.Linear(2 * width, classes)

    def forward(self, x):
        return self.classify(self.features(x).mean((2, 3)))


@torch.no_grad()
def validate(model, loader):
    model.eval()
    correct = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return correct / len(loader.dataset)


def main():
    args = parse_args()
    photos = Photos(photo_folder(64, 800))
    train_set, held_out = Subset(photos, range(64, 800)), Subset(photos, range(64))
    loader = DataLoader(
        train_set,
        batch_size=64,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
        drop_last=True,
    )
    validation = DataLoader(held_out, batch_size=64)
    model = ConvNet(len(photos.labels))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    clock = Clock(args.seconds)
    epoch = 0
    while not clock.done:
        for images, labels in loader:
            optimizer.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                break
        epoch += 1
        if epoch % (2 if args.variant == "slow" else 4) == 0:
            print(f"epoch {epoch} accuracy {validate(model, validation):.3f}")
    clock.report()


if __name__ == "__main__":
    main()

"""Training on pictures in a zip archive of 4,000 members. Planted: the archive is opened, and its directory read,
for each picture; the fixed twin opens it once.
"""

import io
import zipfile

import numpy as np
import torch
from common import Clock, cached, parse_args
from torch import nn
from torch.utils.data import DataLoader, Dataset


def build(folder):
    rng = np.random.default_rng(1)
    with zipfile.ZipFile(folder / "pictures.zip", "w") as archive:
        for index in range(4000):
            buffer = io.BytesIO()
            np.save(buffer, rng.integers(0, 255, (3, 32, 32), dtype=np.uint8))
            archive.writestr(f"pictures/{index:05d}.npy", buffer.getvalue())


class Pictures(Dataset):
    def __init__(self, path):
        self.path = path
        with zipfile.ZipFile(path) as archive:
            self.names = archive.namelist()

    def read(self, name):
        with zipfile.ZipFile(self.path) as archive:
            return archive.read(name)

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        picture = np.load(io.BytesIO(self.read(self.names[index])))
        return torch.from_numpy(picture).float() / 255, int(picture[0, 0, 0]) % 10


class OpenPictures(Pictures):
    def __init__(self, path):
        super().__init__(path)
        self.archive = zipfile.ZipFile(path)

    def read(self, name):
        return self.archive.read(name)


class ReadPictures(OpenPictures):
    def __init__(self, path):
        super().__init__(path)
        self.content = {name: self.archive.read(name) for name in self.names}

    def read(self, name):
        return self.content[name]


def main():
    args = parse_args()
    kinds = {"slow": Pictures, "fast": OpenPictures, "free": ReadPictures}
    dataset = kinds[args.variant](cached("heldout-zip", build) / "pictures.zip")
    loader = DataLoader(dataset, batch_size=8, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 256, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    clock = Clock(args.seconds)
    while not clock.done:
        for pictures, labels in loader:
            loss = nn.functional.cross_entropy(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                break
    clock.report()


if __name__ == "__main__":
    main()

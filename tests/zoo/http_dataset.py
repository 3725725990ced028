"""Trains on pictures behind HTTP. Planted: every sample is fetched again each time it is used; the
fixed twin downloads the folder once."""

import atexit
import io
import pathlib
import subprocess
import sys

import numpy as np
import requests
import torch
from common import Clock, parse_args, photo_folder
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


def start_server(folder, latency=0.02):
    script = pathlib.Path(__file__).with_name("photo_server.py")
    server = subprocess.Popen(
        [sys.executable, str(script), str(folder), str(latency)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(server.terminate)
    return f"http://127.0.0.1:{int(server.stdout.readline())}"


class RemotePhotos(Dataset):
    def __init__(self, base_url, names):
        self.base_url = base_url
        self.names = names
        self.session = requests.Session()

    def __len__(self):
        return len(self.names)

    def fetch(self, name):
        response = self.session.get(f"{self.base_url}/{name}", timeout=10)
        response.raise_for_status()
        return response.content

    def __getitem__(self, index):
        image = Image.open(io.BytesIO(self.fetch(self.names[index])))
        pixels = np.asarray(image.convert("RGB"), dtype=np.float32) / 255
        return torch.from_numpy(pixels).permute(2, 0, 1), index % 7


class MirroredPhotos(RemotePhotos):
    def __init__(self, base_url, names):
        super().__init__(base_url, names)
        self.mirror = {name: super(MirroredPhotos, self).fetch(name) for name in names}

    def fetch(self, name):
        return self.mirror[name]


def main():
    args = parse_args()
    folder = photo_folder(64, 70)
    names = sorted(str(f.relative_to(folder)) for f in folder.glob("*/*.jpg"))
    base_url = start_server(folder)
    dataset_class = RemotePhotos if args.variant == "slow" else MirroredPhotos
    loader = DataLoader(dataset_class(base_url, names), batch_size=8, shuffle=True, drop_last=True)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, stride=2), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.LazyLinear(7),
    )  # fmt: skip
    model(torch.zeros(1, 3, 64, 64))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    step = 0
    while not clock.done:
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            clock.tick()
            if clock.done:
                break
    print("steps", step)
    clock.report()


if __name__ == "__main__":
    main()

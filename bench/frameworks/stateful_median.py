"""Trains on images that a StatefulDataLoader reads in two workers. Planted: each image is smoothed by a large median; the cure
uses a box. A resumable loader keeps its state, the data set's time stays."""

import numpy as np
import torch
from planted import parse_args, rate
from scipy import ndimage
from torch import nn
from torchdata.stateful_dataloader import StatefulDataLoader


class Micrographs(torch.utils.data.Dataset):
    def __init__(self, count, smooth):
        self.count, self.smooth = count, smooth

    def __len__(self):
        return self.count

    def median(self, image):
        return ndimage.median_filter(image, size=9)

    def box(self, image):
        return ndimage.uniform_filter(image, size=9)

    def __getitem__(self, index):
        image = np.random.default_rng(index).random((64, 64), np.float32)
        image = self.median(image) if self.smooth == "median" else self.box(image)
        return torch.from_numpy(image[::4, ::4].copy()).flatten()


def main():
    args = parse_args()
    torch.manual_seed(0)
    data = Micrographs(16 * args.steps, "median" if args.variant == "slow" else "box")
    loader = StatefulDataLoader(data, batch_size=16, num_workers=2)
    model = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 256))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with rate(args.steps):
        for x in loader:
            loss = (model(x) - x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("loss", loss.item())


if __name__ == "__main__":
    main()

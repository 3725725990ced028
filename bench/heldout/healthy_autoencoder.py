"""An autoencoder of pictures that one worker prepares with room to spare. Nothing planted."""

import torch
from common import Clock, parse_args
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    """Pictures of plane waves, computed when they are asked for: cheap."""

    def __init__(self, count=4096, side=64):
        self.count = count
        self.grid = torch.stack(torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")).float() / side

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        phase = index * torch.tensor([0.7, 1.3])
        return torch.sin(6.28 * (self.grid[0] * phase[0] + self.grid[1] * phase[1]))[None]


def main():
    args = parse_args()
    loader = DataLoader(Waves(), batch_size=32, shuffle=True, num_workers=1, persistent_workers=True)
    model = nn.Sequential(
        nn.Conv2d(1, 32, 4, stride=2, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 4, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.ConvTranspose2d(128, 32, 4, stride=2, padding=1), nn.ReLU(),
        nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    while not clock.done:
        for pictures in loader:
            loss = nn.functional.mse_loss(model(pictures), pictures)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                break
    clock.report()


if __name__ == "__main__":
    main()

"""A loop on Fabric. Planted: it saves a checkpoint after every step; the cure does so every two hundred."""

import pathlib
import tempfile

import lightning as L
import torch
from planted import parse_args, rate
from torch import nn


def save_checkpoint(fabric, folder, model, optimizer, step):
    fabric.save(folder / "last.ckpt", {"model": model, "optimizer": optimizer, "step": step})


def main():
    args = parse_args()
    L.seed_everything(0, verbose=False)
    fabric = L.Fabric(accelerator="cpu")
    model = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 128))
    model, optimizer = fabric.setup(model, torch.optim.Adam(model.parameters(), lr=1e-3))
    data = torch.utils.data.TensorDataset(torch.randn(args.steps * 32, 128))
    loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(data, batch_size=32))
    every = 1 if args.variant == "slow" else 200
    with tempfile.TemporaryDirectory() as folder, rate(args.steps):
        for step, (x,) in enumerate(loader):
            loss = (model(x) - x).pow(2).mean()
            optimizer.zero_grad()
            fabric.backward(loss)
            optimizer.step()
            if step % every == 0:
                save_checkpoint(fabric, pathlib.Path(folder), model, optimizer, step)
    print("loss", loss.item())


main()

"""Trains on two ranks with Accelerate. Planted: the main process writes the model and its optimizer after every step, while
the other waits for its gradients; the cure writes every hundred steps."""

import tempfile
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from planted import parse_args, rate
from torch import nn


class Keeper:
    def __init__(self, accelerator, folder, every):
        self.accelerator, self.folder, self.every = accelerator, Path(folder), every

    def save(self, model, optimizer, step):
        if self.accelerator.is_main_process and step % self.every == 0:
            kept = {"model": self.accelerator.unwrap_model(model).state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(kept, self.folder / "last.pt")


def fit(accelerator, model, optimizer, loader, keeper, steps):
    step = 0
    while step < steps:
        for (x,) in loader:
            loss = (model(x) - x).pow(2).mean()
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            keeper.save(model, optimizer, step)
            step += 1
            if step == steps:
                break
    return loss.item()


def main():
    args = parse_args()
    set_seed(0)
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    data = torch.utils.data.TensorDataset(torch.randn(2048, 256))
    loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    with tempfile.TemporaryDirectory() as folder:
        keeper = Keeper(accelerator, folder, every=1 if args.variant == "slow" else 100)
        if accelerator.is_main_process:
            with rate(args.steps):
                loss = fit(accelerator, model, optimizer, loader, keeper, args.steps)
            print("loss", loss)
        else:
            fit(accelerator, model, optimizer, loader, keeper, args.steps)
    accelerator.end_training()


if __name__ == "__main__":
    main()

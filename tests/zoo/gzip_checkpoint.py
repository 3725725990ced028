"""Training with a history of its weights. Planted: a compressed copy of the weights is written every fifth step; the
fixed twin writes one every two hundred steps.
"""

import gzip
import io
import pathlib
import tempfile

import torch
from common import Clock, parse_args
from torch import nn


class WeightHistory:
    def __init__(self, folder, every):
        self.folder = pathlib.Path(folder)
        self.every = every

    def save(self, model, step):
        buffer = io.BytesIO()
        torch.save(model.state_dict(), buffer)
        with gzip.open(self.folder / f"weights-{step % 10}.pt.gz", "wb", compresslevel=6) as file:
            file.write(buffer.getvalue())

    def after_step(self, model, step):
        if self.every and step % self.every == 0:
            self.save(model, step)


def main():
    args = parse_args()
    generator = torch.Generator().manual_seed(7)
    inputs = torch.randn(4096, 512, generator=generator)
    targets = inputs[:, :64].tanh()
    model = nn.Sequential(nn.Linear(512, 768), nn.GELU(), nn.Linear(768, 64))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    with tempfile.TemporaryDirectory() as folder:
        history = WeightHistory(folder, {"slow": 5, "fast": 200, "free": 0}[args.variant])
        step = 0
        while not clock.done:
            rows = torch.randint(0, len(inputs), (256,), generator=generator)
            loss = nn.functional.mse_loss(model(inputs[rows]), targets[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history.after_step(model, step)
            step += 1
            clock.tick()
    clock.report()


if __name__ == "__main__":
    main()

"""A GAN of digits, whose samples are looked at as it learns. Planted: a callback draws the samples as a figure with an
axis each, every few steps; the fixed twin tiles them in one array, and saves that.
"""

import pathlib
import tempfile

import matplotlib
import numpy as np
import torch
from common import Clock, parse_args
from PIL import Image
from sklearn.datasets import load_digits
from torch import nn

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

NOISE, ROWS, COLUMNS = 32, 4, 5


class Samples:
    """Shows what the generator makes of always the same noise."""

    def __init__(self, folder, every=3):
        self.folder, self.every = pathlib.Path(folder), every
        self.noise = torch.randn(ROWS * COLUMNS, NOISE)

    def on_step_end(self, gan):
        if gan.steps % self.every == 0:
            with torch.no_grad():
                pictures = gan.generator(self.noise).squeeze(1).numpy()
            self.save(pictures, self.folder / f"samples-{gan.steps // self.every % 20:02d}.png")

    def save(self, pictures, file):
        figure, axes = plt.subplots(ROWS, COLUMNS, figsize=(COLUMNS, ROWS))
        for axis, picture in zip(axes.flat, pictures, strict=True):
            axis.imshow(picture, cmap="gray", vmin=-1, vmax=1)
            axis.axis("off")
        figure.savefig(file)
        plt.close(figure)


class TiledSamples(Samples):
    def save(self, pictures, file):
        side = pictures.shape[-1]
        tiled = pictures.reshape(ROWS, COLUMNS, side, side).swapaxes(1, 2).reshape(ROWS * side, COLUMNS * side)
        Image.fromarray(((tiled + 1) * 127.5).astype(np.uint8)).save(file)


class UnsavedSamples(Samples):
    def save(self, pictures, file):
        pass


class Losses:
    """The losses of both sides, smoothed."""

    def __init__(self):
        self.smoothed = np.zeros(2)

    def on_step_end(self, gan):
        self.smoothed += 0.05 * (np.array(gan.losses) - self.smoothed)


class Gan:
    def __init__(self, callbacks):
        self.callbacks, self.steps, self.losses = callbacks, 0, (0.0, 0.0)
        self.generator = nn.Sequential(
            nn.Linear(NOISE, 64 * 16),
            nn.Unflatten(1, (64, 4, 4)),
            nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1),
            nn.Tanh(),
        )
        self.critic = nn.Sequential(
            nn.Conv2d(1, 32, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(32, 64, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Linear(64 * 16, 1),
        )
        betas = (0.5, 0.99)
        self.makes = torch.optim.Adam(self.generator.parameters(), lr=2e-4, betas=betas)
        self.judges = torch.optim.Adam(self.critic.parameters(), lr=2e-4, betas=betas)

    def step(self, real):
        made = self.generator(torch.randn(len(real), NOISE))
        judged = nn.functional.softplus(-self.critic(real)) + nn.functional.softplus(self.critic(made.detach()))
        self.judges.zero_grad()
        judged.mean().backward()
        self.judges.step()
        fooled = nn.functional.softplus(-self.critic(made)).mean()
        self.makes.zero_grad()
        fooled.backward()
        self.makes.step()
        self.steps += 1
        self.losses = (judged.mean().item(), fooled.item())
        for callback in self.callbacks:
            callback.on_step_end(self)


def main():
    args = parse_args()
    torch.manual_seed(0)
    digits = torch.from_numpy(load_digits().images).float()[:, None] / 8 - 1
    digits = nn.functional.interpolate(digits, size=16, mode="bilinear")
    kind = {"slow": Samples, "fast": TiledSamples, "free": UnsavedSamples}[args.variant]
    with tempfile.TemporaryDirectory() as folder:
        gan = Gan([Losses(), kind(folder)])
        clock = Clock(args.seconds)
        while not clock.done:
            gan.step(digits[torch.randint(0, len(digits), (64,))])
            clock.tick()
    clock.report()


if __name__ == "__main__":
    main()

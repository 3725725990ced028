"""Denoises photographs. Planted: one 15×15 convolution at full resolution; the fixed twin's is 3×3."""

import numpy as np
import torch
import torch.nn.functional as F
from common import Clock, load_photo, parse_args
from torch import nn


class ContextBlock(nn.Module):
    def __init__(self, channels, kernel):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel, padding=kernel // 2)

    def forward(self, x):
        return F.relu(self.conv(x))


class Denoiser(nn.Module):
    def __init__(self, kernel, channels=12):
        super().__init__()
        self.entry = nn.Conv2d(3, channels, 3, padding=1)
        self.context = ContextBlock(channels, kernel)
        self.refine = nn.Conv2d(channels, channels, 3, padding=1)
        self.exit = nn.Conv2d(channels, 3, 1)

    def forward(self, noisy):
        x = F.relu(self.entry(noisy))
        x = self.context(x)
        x = F.relu(self.refine(x))
        return noisy - self.exit(x)


class Patches:
    """Random clean patches cut from one photograph."""

    def __init__(self, name, size=96):
        self.photo = torch.from_numpy(np.array(load_photo(name))).permute(2, 0, 1).float() / 255
        self.size = size

    def sample(self, n):
        _, height, width = self.photo.shape
        tops = torch.randint(0, height - self.size, (n,)).tolist()
        lefts = torch.randint(0, width - self.size, (n,)).tolist()
        cuts = [self.photo[:, t : t + self.size, x : x + self.size] for t, x in zip(tops, lefts)]
        return torch.stack(cuts)


def main():
    args = parse_args()
    torch.manual_seed(0)
    model = Denoiser(kernel=15 if args.variant == "slow" else 3)
    patches = Patches("astronaut")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    step = 0
    while not clock.done:
        clean = patches.sample(8)
        noisy = clean + 0.1 * torch.randn_like(clean)
        loss = F.mse_loss(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 25 == 0:
            print(f"step {step} psnr {-10 * loss.detach().log10():.2f} dB")
        clock.tick()
    clock.report()


if __name__ == "__main__":
    main()

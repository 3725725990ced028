"""A variational autoencoder of a plant's sensors. Planted: a hook writes histograms of all weights and gradients to the
run's log after every step; the fixed twin does so once in a hundred steps.
"""

import json
import math
import pathlib
import tempfile

import numpy as np
import torch
from common import Clock, parse_args
from torch import nn

SENSORS, TICKS, BATCH = 12, 32, 160


def readings(count=20000, seed=5):
    """What the sensors of a plant say over time, in parts of their usual spread."""
    rng = np.random.default_rng(seed)
    time = np.arange(count)[:, None]
    periods, phases = rng.uniform(40, 400, SENSORS), rng.uniform(0, 6, SENSORS)
    drift = rng.normal(size=(count, SENSORS)).cumsum(0) / 60
    values = np.sin(2 * np.pi * time / periods + phases) + drift + rng.normal(scale=0.1, size=(count, SENSORS))
    return torch.from_numpy(((values - values.mean(0)) / values.std(0)).astype(np.float32))


class SensorVae(nn.Module):
    def __init__(self, hidden=256, latent=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(SENSORS * TICKS, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU()
        )
        self.mean, self.spread = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, SENSORS * TICKS),
        )

    def forward(self, windows):
        hidden = self.encoder(windows)
        mean, spread = self.mean(hidden), self.spread(hidden).clamp(-8, 8)
        latent = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        return self.decoder(latent), mean, spread


def elbo(windows, outputs):
    rebuilt, mean, spread = outputs
    divergence = -0.5 * (1 + spread - mean.square() - spread.exp()).sum(1).mean()
    return nn.functional.mse_loss(rebuilt, windows) * SENSORS * TICKS / 2 + 0.1 * divergence


class HistogramLog:
    def __init__(self, folder, bins=48):
        self.file = open(pathlib.Path(folder) / "histograms.jsonl", "w", encoding="utf-8")
        self.bins = bins

    def __call__(self, step, model, loss):
        self.write(step, model)

    def write(self, step, model):
        record = {"step": step}
        for name, weights in model.named_parameters():
            for kind, tensor in (("weights", weights.detach()), ("gradients", weights.grad)):
                counts, edges = np.histogram(tensor.numpy(), bins=self.bins)
                record[f"{name}/{kind}"] = {"counts": counts.tolist(), "edges": edges.tolist()}
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()


class RareHistogramLog(HistogramLog):
    def __call__(self, step, model, loss):
        if step % 100 == 0:
            self.write(step, model)


class NoHistogramLog(HistogramLog):
    def write(self, step, model):
        pass


class LossLog:
    def __init__(self):
        self.smoothed = math.nan

    def __call__(self, step, model, loss):
        self.smoothed = loss if math.isnan(self.smoothed) else 0.95 * self.smoothed + 0.05 * loss


def main():
    args = parse_args()
    torch.manual_seed(1)
    windows = readings().unfold(0, TICKS, 1).flatten(1)
    model = SensorVae()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    clock = Clock(args.seconds)
    step = 0
    with tempfile.TemporaryDirectory() as folder:
        log = {"slow": HistogramLog, "fast": RareHistogramLog, "free": NoHistogramLog}[args.variant](folder)
        hooks = [LossLog(), log]
        while not clock.done:
            batch = windows[torch.randint(0, len(windows), (BATCH,))]
            loss = elbo(batch, model(batch))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            for hook in hooks:
                hook(step, model, loss.item())
            step += 1
            clock.tick()
        log.file.close()
    clock.report()


if __name__ == "__main__":
    main()

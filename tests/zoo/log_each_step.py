"""An MLP with a careful diary. Planted: statistics of every parameter are written and synced to disk
at every step; the fixed twin does so every hundredth step."""

import json
import os
import tempfile

import torch
from common import Clock, parse_args
from torch import nn


class JsonLogger:
    def __init__(self, path, every):
        self.file = open(path, "w")
        self.every = every

    def on_step_end(self, step, model, loss):
        if step % self.every == 0:
            self.file.write(json.dumps(self.describe(step, model, loss)) + "\n")
            self.file.flush()
            os.fsync(self.file.fileno())

    def describe(self, step, model, loss):
        record = {"step": step, "loss": loss.item()}
        for name, parameter in model.named_parameters():
            for kind, tensor in (("value", parameter.detach()), ("grad", parameter.grad)):
                record[f"{name}.{kind}"] = {
                    "mean": tensor.mean().item(),
                    "std": tensor.std().item(),
                    "max": tensor.abs().max().item(),
                    "quantiles": tensor.flatten()[:4096].quantile(torch.linspace(0, 1, 11)).tolist(),
                }
        return record


class Trainer:
    def __init__(self, model, callbacks, clock):
        self.model, self.callbacks, self.clock = model, callbacks, clock
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def train_step(self, x, y):
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def fit(self, batches):
        step = 0
        while not self.clock.done:
            for x, y in batches:
                loss = self.train_step(x, y)
                for callback in self.callbacks:
                    callback.on_step_end(step, self.model, loss)
                step += 1
                self.clock.tick()
                if self.clock.done:
                    break


def main():
    args = parse_args()
    torch.manual_seed(0)
    layers = [nn.Linear(64, 128), nn.ReLU()]
    for _ in range(8):
        layers += [nn.Linear(128, 128), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(128, 10))
    x = torch.randn(4096, 64)
    y = x[:, :10].argmax(1)
    batches = list(zip(x.split(128), y.split(128)))
    clock = Clock(args.seconds)
    with tempfile.TemporaryDirectory() as folder:
        logger = JsonLogger(os.path.join(folder, "log.jsonl"), 1 if args.variant == "slow" else 100)
        Trainer(model, [logger], clock).fit(batches)
    clock.report()


if __name__ == "__main__":
    main()

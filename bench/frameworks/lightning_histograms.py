"""Fits a regression with Lightning. Planted: a callback writes histograms of all weights after every batch; the cure does
so every hundred batches."""

import json
import logging
import tempfile
import warnings

import lightning as L
import numpy as np
import torch
from planted import parse_args, rate
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class WeightJournal(L.Callback):
    def __init__(self, file, every):
        self.file, self.every = file, every

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.global_step % self.every:
            return
        entry = {}
        for name, weight in module.named_parameters():
            counts, edges = np.histogram(weight.detach().numpy(), bins=200)
            entry[name] = {"counts": counts.tolist(), "edges": edges.tolist()}
        self.file.write(json.dumps(entry) + "\n")


class Regression(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
        self.last = None

    def training_step(self, batch, batch_idx):
        x, y = batch
        self.last = (self.layers(x) - y).pow(2).mean()
        return self.last

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-2)


def main():
    args = parse_args()
    L.seed_everything(0, verbose=False)
    x = torch.randn(4096, 64)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=64)
    model = Regression()
    with tempfile.TemporaryFile("w") as file:
        journal = WeightJournal(file, every=1 if args.variant == "slow" else 100)
        trainer = L.Trainer(
            max_steps=args.steps,
            max_epochs=-1,
            accelerator="cpu",
            callbacks=[journal],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        with rate(args.steps):
            trainer.fit(model, loader)
    print("loss", model.last.item())


main()

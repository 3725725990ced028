"""Train minGPT of 2020 with its own trainer on made characters."""

import time

import mingpt.fake_lightning as pl
import torch
from mingpt.model import GPT
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
BLOCK, SAMPLES = 64, 4096
tokens = torch.randint(65, (SAMPLES, BLOCK + 1))


class Characters(pl.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(TensorDataset(tokens[:, :-1], tokens[:, 1:]), batch_size=32, shuffle=True)


class Over(Exception):
    pass


class Trainer(pl.Trainer):
    """Ends after the training: this version wants a checkpoint and a test set, and cannot average their losses."""

    def load_checkpoint(self):
        raise Over


model = GPT(65, BLOCK, n_layer=4, n_embd=128, n_head=4)

began = time.perf_counter()
try:
    Trainer(max_epochs=1, gradient_clip_val=1.0).fit(model, Characters())
except Over:
    print(f"seconds={time.perf_counter() - began:.3f}")

"""Trains on two ranks that Lightning starts. Planted: documents lie sorted by length, and each rank reads one half, so
that the second has all the long ones; the cure deals them out in turn."""

import logging
import warnings

import lightning as L
import torch
from planted import parse_args, rate
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
logging.getLogger("lightning.fabric").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
WORDS = "the state of a model is what its weights say of all that it has seen until now".split()


class Documents(IterableDataset):
    def __init__(self, count, in_turn):
        self.lengths = [40] * (count // 2) + [4000] * (count // 2)
        self.in_turn = in_turn

    def __iter__(self):
        rank = torch.distributed.get_rank()
        half = len(self.lengths) // 2
        mine = self.lengths[rank::2] if self.in_turn else self.lengths[rank * half : (rank + 1) * half]
        while True:
            for length in mine:
                yield self.encode(length)

    def encode(self, length):
        vector = torch.zeros(64)
        for position in range(length):
            word = WORDS[position % len(WORDS)]
            vector[sum(map(ord, word)) % 64] += 1 / length
        return vector


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
        self.last = None

    def training_step(self, batch, batch_idx):
        self.last = (self.layers(batch) - batch).pow(2).mean()
        return self.last

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    args = parse_args()
    L.seed_everything(0, verbose=False)
    torch.set_num_threads(1)
    loader = DataLoader(Documents(64, in_turn=args.variant == "fast"), batch_size=8)
    model = Model()
    trainer = L.Trainer(
        max_steps=args.steps,
        max_epochs=-1,
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
    )
    if trainer.global_rank == 0:
        with rate(args.steps):
            trainer.fit(model, loader)
        print("loss", model.last.item())
    else:
        trainer.fit(model, loader)


main()

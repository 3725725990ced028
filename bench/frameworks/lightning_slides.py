"""Classifies slides with Lightning. Planted: each image is blurred and turned as it is read, in every epoch anew; the cure
does that once."""

import logging
import warnings

import lightning as L
import numpy as np
import torch
from PIL import Image, ImageFilter
from planted import parse_args, rate
from torch import nn
from torch.utils.data import DataLoader, Dataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class Slides(Dataset):
    def __init__(self, count, in_advance):
        rng = np.random.default_rng(0)
        self.images = [Image.fromarray(rng.integers(0, 255, (128, 128, 3), np.uint8)) for _ in range(count)]
        self.ready = [self.stained(index) for index in range(count)] if in_advance else None

    def stained(self, index):
        image = self.images[index].filter(ImageFilter.GaussianBlur(5)).rotate(17, Image.Resampling.BICUBIC)
        return torch.from_numpy(np.asarray(image.resize((32, 32)), np.float32) / 255).permute(2, 0, 1)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return (self.ready[index] if self.ready else self.stained(index)), index % 4


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 16, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 15 * 15, 4))
        self.last = None

    def training_step(self, batch, batch_idx):
        images, labels = batch
        self.last = nn.functional.cross_entropy(self.layers(images), labels)
        return self.last

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    args = parse_args()
    L.seed_everything(0, verbose=False)
    loader = DataLoader(Slides(64, in_advance=args.variant == "fast"), batch_size=16, shuffle=True)
    model = Classifier()
    trainer = L.Trainer(
        max_steps=args.steps,
        max_epochs=-1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    with rate(args.steps):
        trainer.fit(model, loader)
    print("loss", model.last.item())


main()

"""Trains with Ray Train on two workers. Planted: the dataset counts the pairs of letters of each text one by one; the cure
counts whole arrays."""

import tempfile

import numpy as np
import ray
import torch
from planted import parse_args, rate
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_data_loader, prepare_model
from torch import nn

LETTERS = 26


class Reviews(torch.utils.data.Dataset):
    def __init__(self, count, variant):
        self.count, self.variant = count, variant
        self.texts = np.random.default_rng(0).integers(0, LETTERS, (256, 3000))

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        text = self.texts[index % len(self.texts)]
        return self.pairs(text) if self.variant == "slow" else self.pairs_at_once(text)

    def pairs(self, text):
        counts = torch.zeros(LETTERS * LETTERS)
        text = text.tolist()
        for first, second in zip(text, text[1:]):
            counts[first * LETTERS + second] += 1
        return counts

    def pairs_at_once(self, text):
        return torch.from_numpy(np.bincount(text[:-1] * LETTERS + text[1:], minlength=LETTERS * LETTERS)).float()


def train(settings):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(LETTERS * LETTERS, 512), nn.ReLU(), nn.Linear(512, LETTERS * LETTERS))
    model = prepare_model(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = Reviews(8 * settings["steps"], settings["variant"])
    loader = prepare_data_loader(torch.utils.data.DataLoader(data, batch_size=4))
    for batch in loader:
        x = batch / 3000
        loss = (model(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model.state_dict(), f"{folder}/model.pt")
        ray.train.report({"loss": loss.item()}, checkpoint=Checkpoint.from_directory(folder))


def main():
    args = parse_args()
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    with tempfile.TemporaryDirectory() as folder:
        trainer = TorchTrainer(
            train,
            train_loop_config={"steps": args.steps, "variant": args.variant},
            scaling_config=ScalingConfig(num_workers=2),
            run_config=RunConfig(storage_path=folder),
        )
        with rate(args.steps):
            result = trainer.fit()
    print("loss", result.metrics["loss"])


if __name__ == "__main__":
    main()

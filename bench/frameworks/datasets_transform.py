"""Trains on a Hugging Face dataset that is transformed as its rows are read. Planted: a row's letters are counted one by one
in Python; the cure counts them in C. The transform is the user's, but a method of the library's calls it."""

import numpy as np
import torch
from datasets import Dataset
from planted import parse_args, rate
from torch import nn
from torch.utils.data import DataLoader

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def count_letters(text):
    counts = [0.0] * len(LETTERS)
    for letter in text:
        if letter in LETTERS:
            counts[LETTERS.index(letter)] += 1
    return torch.tensor(counts)


def count_in_c(text):
    return torch.from_numpy(
        np.bincount(np.frombuffer(text.encode(), np.uint8), minlength=128)[97:123].astype(np.float32)
    )


def paragraphs(count):
    rng = np.random.default_rng(0)
    alphabet = np.frombuffer((LETTERS + " ").encode(), np.uint8)
    return [rng.choice(alphabet, 2000).tobytes().decode() for _ in range(count)]


def main():
    args = parse_args()
    torch.manual_seed(0)
    count = count_letters if args.variant == "slow" else count_in_c
    rows = Dataset.from_dict({"text": paragraphs(512)})
    rows = rows.with_transform(lambda batch: {"counts": [count(text) for text in batch["text"]]})
    model = nn.Sequential(nn.Linear(26, 64), nn.ReLU(), nn.Linear(64, 26))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    with rate(args.steps):
        while step < args.steps:
            for batch in DataLoader(rows, batch_size=16, shuffle=True):
                counts = batch["counts"]
                loss = (model(counts) - counts).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                step += 1
                if step == args.steps:
                    break
    print("loss", loss.item())


if __name__ == "__main__":
    main()

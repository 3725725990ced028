"""Trains on a streamed data set of Hugging Face. Planted: map() hashes n-grams in Python for each text; the cure hashes words
only once and looks them up."""

import functools
import random
import zlib

import datasets
import torch
from planted import parse_args, rate
from torch import nn


def texts(count):
    draw = random.Random(0)
    words = [f"{a}{b}{c}" for a in "bcdfgh" for b in "aeiou" for c in "lmnrst"]
    for _ in range(count):
        yield {"text": " ".join(draw.choices(words, k=400))}


def hash_grams(row):
    counts = [0.0] * 256
    for word in row["text"].split():
        for size in (1, 2, 3):
            for begin in range(len(word) - size + 1):
                counts[zlib.crc32(word[begin : begin + size].encode()) % 256] += 1.0
    return {"counts": counts}


@functools.cache
def grams_of(word):
    return [zlib.crc32(word[at : at + n].encode()) % 256 for n in (1, 2, 3) for at in range(len(word) - n + 1)]


def look_up_grams(row):
    numbers = torch.tensor([number for word in row["text"].split() for number in grams_of(word)])
    return {"counts": torch.bincount(numbers, minlength=256).float().tolist()}


def main():
    args = parse_args()
    torch.manual_seed(0)
    stream = datasets.IterableDataset.from_generator(texts, gen_kwargs={"count": 16 * args.steps})
    stream = stream.map(hash_grams if args.variant == "slow" else look_up_grams, remove_columns=["text"])
    loader = torch.utils.data.DataLoader(stream.with_format("torch"), batch_size=16)
    model = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 256))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with rate(args.steps):
        for batch in loader:
            x = batch["counts"] / 400
            loss = (model(x) - x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("loss", loss.item())


main()

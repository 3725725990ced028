"""Trains on a streamed data set of Hugging Face. Planted: map() hashes n-grams in Python for each text; the cure hashes words
only once and looks them up."""

import collections
import functools
import random
import zlib

import datasets
import numpy as np
import torch
from planted import parse_args, rate
from torch import nn


def texts(count):
    draw = random.Random(0)
    words = [f"{a}{b}{c}" for a in "bcdfgh" for b in "aeiou" for c in "lmnrst"]
    kept = [" ".join(draw.choices(words, k=1200)) for _ in range(64)]
    for number in range(count):
        yield {"text": kept[number % len(kept)]}


def hash_grams(row):
    counts = [0.0] * 64
    for word in row["text"].split():
        for size in (1, 2, 3):
            for begin in range(len(word) - size + 1):
                counts[zlib.crc32(word[begin : begin + size].encode()) % 64] += 1.0
    return {"counts": counts}


@functools.cache
def grams_of(word):
    grams = [zlib.crc32(word[at : at + n].encode()) % 64 for n in (1, 2, 3) for at in range(len(word) - n + 1)]
    return np.bincount(grams, minlength=64)


def look_up_grams(row):
    times = collections.Counter(row["text"].split())
    return {"counts": sum(count * grams_of(word) for word, count in times.items()).astype(float).tolist()}


def main():
    args = parse_args()
    torch.manual_seed(0)
    stream = datasets.IterableDataset.from_generator(texts, gen_kwargs={"count": 16 * args.steps})
    stream = stream.map(hash_grams if args.variant == "slow" else look_up_grams, remove_columns=["text"])
    loader = torch.utils.data.DataLoader(stream.with_format("torch"), batch_size=16)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with rate(args.steps):
        for batch in loader:
            x = batch["counts"] / 1200
            loss = (model(x) - x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("loss", loss.item())


main()

"""Short epochs over a word game. Planted: the workers start anew every epoch, and each loads its
lexicon again; the fixed twin keeps its workers."""

import json
import random

import torch
from common import Clock, cached, parse_args
from torch import nn
from torch.utils.data import DataLoader, Dataset


def write_lexicon(folder):
    rng = random.Random(5)
    letters = "abcdefghijklmnopqrstuvwxyz"
    lexicon = {}
    while len(lexicon) < 60_000:
        word = "".join(rng.choices(letters, k=rng.randint(3, 9)))
        lexicon[word] = [rng.randint(0, 99) for _ in range(8)]
    (folder / "lexicon.json").write_text(json.dumps(lexicon))


class WordDataset(Dataset):
    """Words as letter counts; opens its lexicon in the process that first needs it."""

    def __init__(self, path, size=512):
        self.path = path
        self.size = size
        self.words = None

    def load_lexicon(self):
        with open(self.path) as f:
            self.words = list(json.load(f).items())

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if self.words is None:
            self.load_lexicon()
        word, features = self.words[index]
        counts = [0] * 26
        for letter in word:
            counts[ord(letter) - 97] += 1
        return torch.tensor(counts + features, dtype=torch.float32), len(word) - 3


def train_epoch(model, loader, optimizer, clock):
    for features, length in loader:
        loss = nn.functional.cross_entropy(model(features), length)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if clock.done:
            break
    return loss.item()


def main():
    args = parse_args()
    path = cached("lexicon", write_lexicon) / "lexicon.json"
    loader = DataLoader(
        WordDataset(path),
        batch_size=32,
        shuffle=True,
        num_workers=2,
        persistent_workers=args.variant == "fast",
    )
    model = nn.Sequential(nn.Linear(34, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 7))
    optimizer = torch.optim.Adam(model.parameters())
    clock = Clock(args.seconds)
    epoch = 0
    while not clock.done:
        loss = train_epoch(model, loader, optimizer, clock)
        epoch += 1
        if epoch % 5 == 0:
            print(f"epoch {epoch} loss {loss:.3f}")
    clock.report()


if __name__ == "__main__":
    main()

"""Document classification over bags of words. Planted: a collate function that pads in Python."""

import functools

import numpy as np
import torch
from common import Clock, parse_args
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

VOCABULARY = 5000
PAD = 0


class Documents(Dataset):
    def __init__(self, n=4096, seed=1):
        rng = np.random.default_rng(seed)
        self.documents = [np.minimum(rng.zipf(1.3, rng.integers(50, 400)), VOCABULARY - 1) for _ in range(n)]
        self.labels = rng.integers(0, 4, n)

    def __len__(self):
        return len(self.documents)

    def __getitem__(self, i):
        return self.documents[i], int(self.labels[i])


def pad_batch(samples, pad=PAD):
    longest = max(len(tokens) for tokens, _ in samples)
    ids, mask = [], []
    for tokens, _ in samples:
        row, row_mask = [], []
        for position in range(longest):
            if position < len(tokens):
                row.append(int(tokens[position]))
                row_mask.append(1.0)
            else:
                row.append(pad)
                row_mask.append(0.0)
        ids.append(row)
        mask.append(row_mask)
    labels = [label for _, label in samples]
    return torch.tensor(ids), torch.tensor(mask), torch.tensor(labels)


def pad_batch_tensors(samples, pad=PAD):
    sequences = [torch.from_numpy(tokens) for tokens, _ in samples]
    ids = pad_sequence(sequences, batch_first=True, padding_value=pad)
    return ids, (ids != pad).float(), torch.tensor([label for _, label in samples])


class BagOfWords(nn.Module):
    def __init__(self, dim=48, classes=4):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, dim, padding_idx=PAD)
        self.mlp = nn.Sequential(nn.Linear(dim, 256), nn.ReLU(), nn.Linear(256, classes))

    def forward(self, ids, mask):
        words = self.embed(ids) * mask.unsqueeze(-1)
        return self.mlp(words.sum(1) / mask.sum(1, keepdim=True).clamp(min=1))


def run(args):
    torch.manual_seed(1)
    collate = pad_batch if args.variant == "slow" else pad_batch_tensors
    make_loader = functools.partial(DataLoader, batch_size=32, collate_fn=collate)
    train_loader = make_loader(Documents(), shuffle=True)
    model = BagOfWords()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    clock = Clock(args.seconds)
    while not clock.done:
        total = 0.0
        for step, (ids, mask, labels) in enumerate(train_loader, 1):
            loss = nn.functional.cross_entropy(model(ids, mask), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            clock.tick()
            if clock.done:
                break
        print(f"mean loss {total / step:.4f}")
    clock.report()


run(parse_args())

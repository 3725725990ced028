"""Learns to fill in masked words. Planted: the logits of every word are computed, though one in eight has a label; the
fixed twin computes those of the words that have."""

import torch
from common import Clock, parse_args
from torch import nn
from torch.nn import functional as F

VOCABULARY, LENGTH, IGNORED = 6000, 96, -100


class Mixer(nn.Module):
    """Two convolutions over the words, and their sum with what went in."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.near = nn.Conv1d(width, width, 5, padding=2)
        self.far = nn.Conv1d(width, width, 5, padding=6, dilation=3)

    def forward(self, x):
        mixed = self.norm(x).transpose(1, 2)
        return x + self.far(F.gelu(self.near(mixed))).transpose(1, 2)


class Head(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.words = nn.Linear(width, VOCABULARY)

    def forward(self, x):
        return self.words(F.gelu(self.dense(x)))


class FillIn(nn.Module):
    def __init__(self, selects, width=96, layers=3):
        super().__init__()
        self.selects = selects
        self.embed = nn.Embedding(VOCABULARY, width)
        self.layers = nn.Sequential(*(Mixer(width) for _ in range(layers)))
        self.head = Head(width)

    def forward(self, words, labels):
        x = self.layers(self.embed(words))
        if self.selects:
            x, labels = x[labels != IGNORED], labels[labels != IGNORED]
        logits = self.head(x)
        return F.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=IGNORED)


def masked(text):
    """A batch with one word in eight hidden, and these as labels."""
    hidden = torch.rand(text.shape) < 0.125
    return torch.where(hidden, 1, text), torch.where(hidden, text, IGNORED)


def main():
    args = parse_args()
    torch.manual_seed(0)
    corpus = torch.randint(2, VOCABULARY, (2048, LENGTH))
    model = FillIn(selects=args.variant == "fast")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    clock = Clock(args.seconds)
    while not clock.done:
        for text in corpus[torch.randperm(len(corpus))].split(16):
            loss = model(*masked(text))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                break
    clock.report()


if __name__ == "__main__":
    main()

"""Trains on annotated sentences held as Python objects. Planted: a full garbage collection after
every step, "to keep memory low"; the fixed twin leaves it to the interpreter."""

import gc
import random
from dataclasses import dataclass, field

import torch
from common import Clock, parse_args
from torch import nn


@dataclass
class Token:
    text: int
    tags: list = field(default_factory=list)


@dataclass
class Sentence:
    tokens: list
    label: int


def read_corpus(n=6_000):
    rng = random.Random(9)
    return [Sentence([Token(rng.randrange(2000), [rng.randrange(9)]) for _ in range(12)], i % 3) for i in range(n)]


def encode(sentences):
    ids = torch.tensor([[token.text for token in s.tokens] for s in sentences])
    tags = torch.tensor([[token.tags[0] for token in s.tokens] for s in sentences])
    return ids, tags, torch.tensor([s.label for s in sentences])


def free_memory():
    gc.collect()


class Tagger(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.words, self.tags = nn.Embedding(2000, dim), nn.Embedding(9, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.label = nn.Linear(2 * dim, 3)

    def forward(self, ids, tags):
        states, _ = self.rnn(self.words(ids) + self.tags(tags))
        return self.label(states.amax(1))


def train(corpus, args):
    tagger = Tagger()
    optimizer = torch.optim.Adam(tagger.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    while not clock.done:
        ids, tags, labels = encode(random.sample(corpus, 32))
        loss = nn.functional.cross_entropy(tagger(ids, tags), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if args.variant == "slow":
            free_memory()
        clock.tick()
    clock.report()


if __name__ == "__main__":
    train(read_corpus(), parse_args())

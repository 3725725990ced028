"""Sentences of different lengths, weighted by attention. Planted: each sentence is weighted by itself, with a handful
of operators; the fixed twin pads once and masks.
"""

import torch
from common import Clock, parse_args
from torch import nn

SENTENCES, LONGEST, WIDTH = 96, 24, 16


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(400, WIDTH)
        self.scores = nn.Linear(WIDTH, 1)
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, tokens, lengths):
        return self.head(self.weighted(self.words(tokens), lengths))

    def weighted(self, embedded, lengths):
        rows = []
        for row, length in enumerate(lengths.tolist()):
            sentence = embedded[row, :length]
            weights = torch.softmax(self.scores(torch.tanh(sentence)).squeeze(-1), 0)
            rows.append((weights.unsqueeze(-1) * sentence).sum(0))
        return torch.stack(rows)


class MaskedReader(Reader):
    def weighted(self, embedded, lengths):
        scores = self.scores(torch.tanh(embedded)).squeeze(-1)
        absent = torch.arange(LONGEST) >= lengths.unsqueeze(-1)
        weights = torch.softmax(scores.masked_fill(absent, float("-inf")), 1)
        return (weights.unsqueeze(-1) * embedded).sum(1)


class UnweightedReader(Reader):
    def weighted(self, embedded, lengths):
        return embedded[:, 0]


def main():
    args = parse_args()
    generator = torch.Generator().manual_seed(12)
    tokens = torch.randint(0, 400, (4096, LONGEST), generator=generator)
    lengths = torch.randint(4, LONGEST + 1, (4096,), generator=generator)
    topics = tokens[:, 0] % 4
    model = {"slow": Reader, "fast": MaskedReader, "free": UnweightedReader}[args.variant]()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    while not clock.done:
        rows = torch.randint(0, len(tokens), (SENTENCES,), generator=generator)
        loss = nn.functional.cross_entropy(model(tokens[rows], lengths[rows]), topics[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
    clock.report()


if __name__ == "__main__":
    main()

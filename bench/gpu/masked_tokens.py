"""Trains a tagger on padded sentences. Planted: the loss of each of 24 kinds of tags picks its tokens by a mask, whose
size only the device knows, so the program waits for it; the fixed twin weighs all tokens instead."""

import torch
from common import Clock, parse_args
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KINDS, WIDTH, LENGTH, BATCH = 24, 256, 128, 64


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(5000, WIDTH)
        self.encoder = nn.GRU(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True)
        self.output = nn.Linear(WIDTH, KINDS)

    def forward(self, tokens):
        return self.output(self.encoder(self.tokens(tokens))[0])

    def loss(self, logits, tags):
        total = torch.zeros((), device=logits.device)
        for kind in range(KINDS):
            chosen = tags == kind
            if chosen.any():
                total = total + nn.functional.cross_entropy(logits[chosen], tags[chosen])
        return total / KINDS

    def loss_on_device(self, logits, tags):
        each = nn.functional.cross_entropy(logits.flatten(0, 1), tags.flatten(), reduction="none")
        kinds = nn.functional.one_hot(tags.flatten(), KINDS).to(each.dtype)
        return (kinds.T @ each / kinds.sum(0).clamp(min=1)).sum() / KINDS


def train(model, optimizer, tokens, tags, variant):
    logits = model(tokens)
    loss = model.loss(logits, tags) if variant == "slow" else model.loss_on_device(logits, tags)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main():
    args = parse_args()
    torch.manual_seed(0)
    tokens = torch.randint(0, 5000, (2048, LENGTH), device=DEVICE)
    tags = torch.randint(0, KINDS, (2048, LENGTH), device=DEVICE)
    model = Tagger().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    while not clock.done:
        for start in range(0, len(tokens), BATCH):
            train(model, optimizer, tokens[start : start + BATCH], tags[start : start + BATCH], args.variant)
            clock.tick()
            if clock.done:
                break
    clock.report()


if __name__ == "__main__":
    main()

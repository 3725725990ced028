"""A word tagger trained with smoothed labels. Planted: the plain loss is summed up for the report with
its graph; the fixed twin adds the number."""

import torch
import torch.nn.functional as F
from common import Clock, parse_args
from torch import nn


class TaggingModel(nn.Module):
    def __init__(self, words=2000, tags=1200, dim=96):
        super().__init__()
        self.embedding = nn.Embedding(words, dim)
        self.context = nn.Conv1d(dim, dim, 3, padding=1)
        self.out = nn.Linear(dim, tags)

    def forward(self, words):
        x = self.embedding(words)
        x = x + self.context(x.transpose(1, 2)).transpose(1, 2).relu()
        return self.out(x)


def train_epoch(model, optimizer, sentences, tags, clock, detach):
    running_loss = 0.0
    for step, rows in enumerate(torch.randperm(len(sentences)).split(16), start=1):
        logits = model(sentences[rows]).flatten(0, 1)
        target = tags[rows].flatten()
        loss = F.cross_entropy(logits, target, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        plain_loss = F.cross_entropy(logits, target)
        running_loss += plain_loss.item() if detach else plain_loss
        clock.tick()
        if clock.done:
            break
    return running_loss / step


def main():
    args = parse_args()
    generator = torch.Generator().manual_seed(0)
    sentences = torch.randint(0, 2000, (100_000, 24), generator=generator)
    tags = (sentences * 13 + 5) % 1200
    model = TaggingModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    epoch = 0
    while not clock.done:
        detach = args.variant == "fast"
        loss = train_epoch(model, optimizer, sentences, tags, clock, detach)
        epoch += 1
        print(f"epoch {epoch} mean loss {loss:.3f}")
    clock.report()


if __name__ == "__main__":
    main()

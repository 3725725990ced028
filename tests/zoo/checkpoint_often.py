"""Trains word vectors. Planted: model and optimizer are saved every fifth step; the fixed twin saves
them every five hundred steps."""

import os
import tempfile
from collections import deque

import torch
from common import Clock, parse_args
from torch import nn


class Checkpointer:
    """Keeps the last few checkpoints of a run."""

    def __init__(self, folder, every, keep=2):
        self.folder, self.every = folder, every
        self.kept = deque()
        self.keep = keep

    def __call__(self, step, model, optimizer):
        if step % self.every:
            return
        path = os.path.join(self.folder, f"step-{step}.pt")
        state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, path)
        self.kept.append(path)
        if len(self.kept) > self.keep:
            os.remove(self.kept.popleft())


class SkipGram(nn.Module):
    def __init__(self, words=20_000, dim=128):
        super().__init__()
        self.target = nn.Embedding(words, dim, sparse=True)
        self.context = nn.Embedding(words, dim, sparse=True)

    def forward(self, target, context):
        return torch.einsum("bd,bkd->bk", self.target(target), self.context(context))


def pairs(words=20_000, batch=256, negatives=4):
    generator = torch.Generator().manual_seed(1)
    while True:
        target = torch.randint(0, words, (batch,), generator=generator)
        context = torch.randint(0, words, (batch, 1 + negatives), generator=generator)
        context[:, 0] = (target * 7 + 3) % words
        yield target, context


def main():
    args = parse_args()
    model = SkipGram()
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=1e-3)
    labels = torch.zeros(256, 5)
    labels[:, 0] = 1.0
    with tempfile.TemporaryDirectory() as folder:
        save = Checkpointer(folder, every=5 if args.variant == "slow" else 500)
        clock = Clock(args.seconds)
        for step, (target, context) in enumerate(pairs(), start=1):
            loss = nn.functional.binary_cross_entropy_with_logits(model(target, context), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            save(step, model, optimizer)
            clock.tick()
            if clock.done:
                break
    print(f"loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()

"""Two-tower recommendation. Planted: a dense Adam updates every row of large embeddings for a small
batch; the fixed twin's gradients and optimizer are sparse."""

import torch
from common import Clock, parse_args
from torch import nn


class TwoTowers(nn.Module):
    def __init__(self, users, items, dim, sparse):
        super().__init__()
        self.users = nn.Embedding(users, dim, sparse=sparse)
        self.items = nn.Embedding(items, dim, sparse=sparse)

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(-1)


def interactions(users, items, batch=64):
    generator = torch.Generator().manual_seed(6)
    while True:
        user = torch.randint(0, users, (batch,), generator=generator)
        item = torch.randint(0, items, (batch,), generator=generator)
        yield user, item, ((user + item) % 2).float()


def main():
    args = parse_args()
    sparse = args.variant == "fast"
    users, items = 60_000, 20_000
    model = TwoTowers(users, items, 32, sparse)
    optimizer_class = torch.optim.SparseAdam if sparse else torch.optim.Adam
    optimizer = optimizer_class(list(model.parameters()), lr=1e-3)
    clock = Clock(args.seconds)
    for user, item, bought in interactions(users, items):
        score = model(user, item)
        loss = nn.functional.binary_cross_entropy_with_logits(score, bought)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if clock.done:
            break
    print(f"loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()

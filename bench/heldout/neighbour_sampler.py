"""A graph network on sampled neighbours; batches come from a generator of the program's own. Planted: neighbours are
drawn one by one from Python sets; the fixed twin draws them from a padded tensor.
"""

import random

import torch
from common import Clock, parse_args
from torch import nn

NODES, DEGREE, FANOUT, BATCH = 20000, 30, 10, 128


class SetSampler:
    """Neighbours in sets, as the edges are read."""

    def __init__(self, neighbours):
        self.neighbours = [set(row) for row in neighbours.tolist()]
        self.random = random.Random(0)

    def sample(self, nodes):
        picked = []
        for node in nodes.tolist():
            candidates = sorted(self.neighbours[node])
            picked.append([candidates[self.random.randrange(len(candidates))] for _ in range(FANOUT)])
        return torch.tensor(picked)


class TensorSampler:
    def __init__(self, neighbours):
        self.neighbours = neighbours

    def sample(self, nodes):
        columns = torch.randint(0, DEGREE, (len(nodes), FANOUT))
        return self.neighbours[nodes[:, None], columns]


class FixedSampler(TensorSampler):
    """Always the same neighbours: nothing is left of the sampling."""

    def sample(self, nodes):
        return self.neighbours[nodes, :FANOUT]


def node_batches(sampler):
    while True:
        for nodes in torch.randperm(NODES).split(BATCH):
            near = sampler.sample(nodes)
            yield nodes, near, sampler.sample(near.flatten()).view(*near.shape, FANOUT)


class Sage(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Embedding(NODES, 64)
        self.inner = nn.Linear(128, 128)
        self.outer = nn.Linear(192, 16)

    def forward(self, nodes, near, far):
        around = torch.cat([self.features(near), self.features(far).mean(2)], dim=-1)
        return self.outer(torch.cat([self.features(nodes), self.inner(around).relu().mean(1)], dim=-1))


def main():
    args = parse_args()
    generator = torch.Generator().manual_seed(2)
    neighbours = torch.randint(0, NODES, (NODES, DEGREE), generator=generator)
    labels = torch.randint(0, 16, (NODES,), generator=generator)
    kinds = {"slow": SetSampler, "fast": TensorSampler, "free": FixedSampler}
    model = Sage()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    clock = Clock(args.seconds)
    for nodes, near, far in node_batches(kinds[args.variant](neighbours)):
        loss = nn.functional.cross_entropy(model(nodes, near, far), labels[nodes])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if clock.done:
            break
    clock.report()


if __name__ == "__main__":
    main()

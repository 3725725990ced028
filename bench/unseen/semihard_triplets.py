"""Sentences about the same thing are drawn together. Planted: the triplets of a batch are searched for in Python, one
negative after the other; the fixed twin compares all negatives of all pairs at once.
"""

import numpy as np
import torch
from common import Clock, parse_args
from torch import nn

WORDS, LENGTH, TOPICS, PER_TOPIC, TOPICS_AT_ONCE = 6000, 24, 120, 8, 18


class Sentences:
    """Sentences whose words are drawn partly from their topic's own."""

    def __init__(self, seed=21):
        self.rng = np.random.default_rng(seed)
        self.own = self.rng.integers(1, WORDS, (TOPICS, 60))

    def batch(self):
        topics = self.rng.choice(TOPICS, TOPICS_AT_ONCE, replace=False).repeat(PER_TOPIC)
        size = (len(topics), LENGTH)
        own = self.own[topics[:, None], self.rng.integers(0, self.own.shape[1], size)]
        words = np.where(self.rng.random(size) < 0.3, own, self.rng.integers(1, WORDS, size))
        return torch.from_numpy(words), topics


class Encoder(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.words = nn.EmbeddingBag(WORDS, width, mode="mean", sparse=True)
        self.project = nn.Sequential(
            nn.Linear(width, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 64)
        )

    def forward(self, words):
        return nn.functional.normalize(self.project(self.words(words)), dim=1)


def mine(distances, topics):
    """For each pair of a topic the nearest negative beyond it, or else the farthest one."""
    rows, topics = distances.tolist(), topics.tolist()
    triplets = []
    for anchor, row in enumerate(rows):
        for positive, reach in enumerate(row):
            if positive == anchor or topics[positive] != topics[anchor]:
                continue
            nearest, chosen = float("inf"), None
            farthest, fallback = -1.0, None
            for negative, distance in enumerate(row):
                if topics[negative] == topics[anchor]:
                    continue
                if reach < distance < nearest:
                    nearest, chosen = distance, negative
                if distance > farthest:
                    farthest, fallback = distance, negative
            triplets.append((anchor, positive, fallback if chosen is None else chosen))
    return torch.tensor(triplets)


def mine_at_once(distances, topics):
    rows = distances.numpy()
    same = topics[:, None] == topics[None, :]
    anchors, positives = np.nonzero(same & ~np.eye(len(topics), dtype=bool))
    candidates = np.where(same[anchors], np.nan, rows[anchors])
    beyond = candidates > rows[anchors, positives][:, None]
    chosen = np.where(beyond, candidates, np.inf).argmin(1)
    fallback = np.nanargmax(candidates, 1)
    return torch.from_numpy(np.stack((anchors, positives, np.where(beyond.any(1), chosen, fallback)), 1))


class FirstMined:
    def __init__(self):
        self.triplets = None

    def __call__(self, distances, topics):
        if self.triplets is None:
            self.triplets = mine_at_once(distances, topics)
        return self.triplets


def triplet_loss(embeddings, topics, miner):
    distances = torch.cdist(embeddings.detach(), embeddings.detach())
    anchors, positives, negatives = miner(distances, topics).unbind(1)
    pulled = (embeddings[anchors] * embeddings[positives]).sum(1)
    pushed = (embeddings[anchors] * embeddings[negatives]).sum(1)
    return nn.functional.softplus(8 * (pushed - pulled)).mean()


def main():
    args = parse_args()
    torch.manual_seed(4)
    miner = {"slow": mine, "fast": mine_at_once, "free": FirstMined()}[args.variant]
    sentences, encoder = Sentences(), Encoder()
    optimizers = [
        torch.optim.SGD(encoder.words.parameters(), lr=2.0),
        torch.optim.Adam(encoder.project.parameters(), lr=3e-4),
    ]
    clock = Clock(args.seconds)
    while not clock.done:
        words, topics = sentences.batch()
        loss = triplet_loss(encoder(words), topics, miner)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        clock.tick()
    clock.report()


if __name__ == "__main__":
    main()

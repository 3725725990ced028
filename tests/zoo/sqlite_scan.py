"""Sentiment of product reviews kept in SQLite. Planted: reviews are looked up by a column without an
index, so that every lookup scans the table."""

import random
import sqlite3

import torch
from common import Clock, cached, parse_args
from torch import nn
from torch.utils.data import DataLoader, Dataset

WORDS = "good bad fine great awful slow quick cheap dear late broken lovely odd sturdy weak nice".split()
ROWS = 40_000


def create_database(folder, index=False):
    rng = random.Random(3)
    db = sqlite3.connect(folder / "reviews.db")
    db.execute("CREATE TABLE reviews (sku TEXT, stars INTEGER, body TEXT)")
    rows = ((f"sku-{i:06d}", rng.randint(1, 5), " ".join(rng.choices(WORDS, k=24))) for i in range(ROWS))
    db.executemany("INSERT INTO reviews VALUES (?, ?, ?)", rows)
    if index:
        db.execute("CREATE INDEX by_sku ON reviews (sku)")
    db.commit()
    db.close()


class ReviewDataset(Dataset):
    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.vocabulary = {word: i for i, word in enumerate(WORDS)}

    def __len__(self):
        return ROWS

    def fetch(self, sku):
        query = "SELECT body, stars FROM reviews WHERE sku = ?"
        return self.db.execute(query, (sku,)).fetchall()[0]

    def __getitem__(self, index):
        body, stars = self.fetch(f"sku-{index:06d}")
        tokens = torch.tensor([self.vocabulary[word] for word in body.split()])
        return tokens, float(stars > 3)


class SentimentModel(nn.Module):
    def __init__(self, vocabulary_size, dim=64):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, 1)

    def forward(self, tokens):
        _, hidden = self.rnn(self.embedding(tokens))
        return self.out(hidden[-1]).squeeze(-1)


class Trainer:
    def __init__(self, model, loader, clock):
        self.model, self.loader, self.clock = model, loader, clock
        self.optimizer = torch.optim.Adam(model.parameters())
        self.loss = nn.BCEWithLogitsLoss()

    def training_step(self, batch):
        tokens, target = batch
        return self.loss(self.model(tokens), target.float())

    def fit(self):
        while not self.clock.done:
            for batch in self.loader:
                self.optimizer.zero_grad()
                loss = self.training_step(batch)
                loss.backward()
                self.optimizer.step()
                self.clock.tick()
                if self.clock.done:
                    break


if __name__ == "__main__":
    args = parse_args()
    if args.variant == "slow":
        folder = cached("reviews", create_database)
    else:
        folder = cached("reviews-indexed", lambda folder: create_database(folder, index=True))
    dataset = ReviewDataset(folder / "reviews.db")
    loader = DataLoader(dataset, batch_size=16, shuffle=True)
    trainer = Trainer(SentimentModel(len(WORDS)), loader, Clock(args.seconds))
    trainer.fit()
    trainer.clock.report()

"""Items are ranked for users from their clicks. Planted: to draw items that a user never clicked, the whole table of
clicks is filtered for each user of a batch; the fixed twin groups the table once.
"""

import numpy as np
import pandas as pd
import torch
from common import Clock, parse_args
from torch import nn

USERS, ITEMS, CLICKS, BATCH, NEGATIVES = 2000, 4000, 40000, 96, 24


def make_clicks():
    """A log of clicks; few items are clicked often."""
    rng = np.random.default_rng(63)
    ranks = rng.zipf(1.3, CLICKS) % ITEMS
    return pd.DataFrame(
        {
            "user": rng.integers(0, USERS, CLICKS),
            "item": rng.permutation(ITEMS)[ranks],
            "seconds": rng.exponential(30.0, CLICKS).round(1),
        }
    )


class ClickLog:
    def __init__(self, clicks):
        self.clicks = clicks
        self.rng = np.random.default_rng(0)

    def clicked_by(self, user):
        """The items that a user has clicked."""
        return set(self.clicks[self.clicks["user"] == user]["item"])

    def negatives(self, users):
        """For each user some items that were not clicked, as (users, NEGATIVES)."""
        drawn = np.empty((len(users), NEGATIVES), np.int64)
        for row, user in enumerate(users):
            clicked = self.clicked_by(user)
            items = self.rng.integers(0, ITEMS, 2 * NEGATIVES).tolist()
            drawn[row] = [item for item in items if item not in clicked][:NEGATIVES]
        return drawn

    def batches(self):
        """Endless batches of user, clicked item, time spent and items not clicked."""
        users, items, seconds = (self.clicks[name].to_numpy() for name in ("user", "item", "seconds"))
        while True:
            for rows in np.split(self.rng.permutation(CLICKS)[: CLICKS // BATCH * BATCH], CLICKS // BATCH):
                yield users[rows], items[rows], np.log1p(seconds[rows])


class GroupedClickLog(ClickLog):
    def __init__(self, clicks):
        super().__init__(clicks)
        self.groups = {user: set(items) for user, items in clicks.groupby("user")["item"]}

    def clicked_by(self, user):
        return self.groups[user]


class OneUserLog(ClickLog):
    def __init__(self, clicks):
        super().__init__(clicks)
        self.clicked = super().clicked_by(clicks["user"].iloc[0])

    def clicked_by(self, user):
        return self.clicked


class Ranker(nn.Module):
    """Scores pairs of user and item."""

    def __init__(self, width=32):
        super().__init__()
        self.users = nn.Embedding(USERS, width)
        self.items = nn.Embedding(ITEMS, width)
        self.popularity = nn.Embedding(ITEMS, 1)
        self.mix = nn.Sequential(nn.Linear(2 * width, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, users, items):
        left, right = self.users(users)[:, None].expand(-1, items.shape[1], -1), self.items(items)
        mixed = self.mix(torch.cat([left * right, right], -1))
        return (mixed + self.popularity(items)).squeeze(-1)


def ranking_loss(scores, weights):
    """The clicked item is the first of each row, and is to have the highest score."""
    chance = nn.functional.log_softmax(scores, dim=1)[:, 0]
    return -(weights * chance).sum() / weights.sum()


def main():
    args = parse_args()
    torch.manual_seed(0)
    log = {"slow": ClickLog, "fast": GroupedClickLog, "free": OneUserLog}[args.variant](make_clicks())
    model = Ranker()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
    clock = Clock(args.seconds)
    for users, clicked, weights in log.batches():
        negatives = log.negatives(users)
        items = torch.from_numpy(np.concatenate([clicked[:, None], negatives], axis=1))
        scores = model(torch.from_numpy(users), items)
        loss = ranking_loss(scores, torch.from_numpy(weights).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if clock.done:
            break
    clock.report()


if __name__ == "__main__":
    main()

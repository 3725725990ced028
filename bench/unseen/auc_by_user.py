"""A click model of users and items. Planted: a metric asks scikit-learn for the area under the curve of each user of
each batch; the fixed twin ranks all impressions at once.
"""

import numpy as np
import torch
from common import Clock, parse_args
from sklearn.metrics import roc_auc_score
from torch import nn

USERS, ITEMS, SHOWN, AT_ONCE = 5000, 8000, 40, 20


class ClickLog:
    """Lists of items shown to users, and what they clicked."""

    def __init__(self, seed=3):
        self.rng = np.random.default_rng(seed)
        self.tastes = self.rng.normal(size=(USERS, 4)).astype(np.float32)
        self.traits = self.rng.normal(size=(ITEMS, 4)).astype(np.float32)

    def __iter__(self):
        while True:
            users = self.rng.choice(USERS, AT_ONCE, replace=False).repeat(SHOWN)
            items = self.rng.integers(0, ITEMS, len(users))
            wanted = (self.tastes[users] * self.traits[items]).sum(1) - 0.7
            clicked = self.rng.random(len(users)) < 1 / (1 + np.exp(-wanted))
            yield torch.from_numpy(users), torch.from_numpy(items), torch.from_numpy(clicked.astype(np.float32))


class ClickModel(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.user = nn.Embedding(USERS, width, sparse=True)
        self.item = nn.Embedding(ITEMS, width, sparse=True)
        self.tower = nn.Sequential(
            nn.Linear(3 * width, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1)
        )

    def forward(self, users, items):
        user, item = self.user(users), self.item(items)
        return self.tower(torch.cat((user, item, user * item), 1)).squeeze(1)


class UserAuc:
    """Mean of the users' areas, over the batches so far."""

    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, users, clicked, scores):
        for user in np.unique(users):
            of_user = users == user
            if 0 < clicked[of_user].sum() < of_user.sum():
                self.total += roc_auc_score(clicked[of_user], scores[of_user])
                self.count += 1

    def compute(self):
        return self.total / max(self.count, 1)


class RankedAuc(UserAuc):
    def update(self, users, clicked, scores):
        order = np.lexsort((scores, users))
        _, user, shown = np.unique(users[order], return_inverse=True, return_counts=True)
        ranks = np.arange(1, len(order) + 1) - (shown.cumsum() - shown)[user]
        hits = np.bincount(user, clicked[order])
        above = np.bincount(user, clicked[order] * ranks) - hits * (hits + 1) / 2
        mixed = (hits > 0) & (hits < shown)
        self.total += (above[mixed] / (hits * (shown - hits))[mixed]).sum()
        self.count += int(mixed.sum())


class NoAuc(UserAuc):
    def update(self, users, clicked, scores):
        pass


class MetricsCallback:
    def __init__(self, metric):
        self.metric, self.history = metric, []

    def on_step_end(self, step, batch, scores):
        users, _, clicked = batch
        self.metric.update(users.numpy(), clicked.numpy(), scores.detach().numpy())
        if step % 50 == 0:
            self.history.append((step, self.metric.compute()))


class Trainer:
    def __init__(self, model, callbacks):
        self.model, self.callbacks = model, callbacks
        self.sparse = torch.optim.SGD([*model.user.parameters(), *model.item.parameters()], lr=0.5)
        self.dense = torch.optim.Adam(model.tower.parameters(), lr=1e-3)

    def step(self, users, items, clicked):
        scores = self.model(users, items)
        loss = nn.functional.binary_cross_entropy_with_logits(scores, clicked)
        for optimizer in (self.sparse, self.dense):
            optimizer.zero_grad()
        loss.backward()
        for optimizer in (self.sparse, self.dense):
            optimizer.step()
        return scores

    def fit(self, batches, clock):
        for step, batch in enumerate(batches):
            scores = self.step(*batch)
            for callback in self.callbacks:
                callback.on_step_end(step, batch, scores)
            clock.tick()
            if clock.done:
                break


def main():
    args = parse_args()
    torch.manual_seed(0)
    metric = {"slow": UserAuc, "fast": RankedAuc, "free": NoAuc}[args.variant]()
    trainer = Trainer(ClickModel(), [MetricsCallback(metric)])
    clock = Clock(args.seconds)
    trainer.fit(ClickLog(), clock)
    clock.report()


if __name__ == "__main__":
    main()

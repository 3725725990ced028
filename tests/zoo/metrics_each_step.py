"""Click prediction. Planted: AUC and average precision over the whole epoch so far at every step; the
fixed twin computes them once an epoch."""

import numpy as np
import torch
from common import Clock, parse_args
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EpochMetrics:
    def __init__(self):
        self.reset()

    def reset(self):
        self.scores, self.labels = [], []

    def add(self, logits, labels):
        self.scores.append(logits.detach().sigmoid().numpy())
        self.labels.append(labels.numpy())

    def compute(self):
        scores, labels = np.concatenate(self.scores), np.concatenate(self.labels)
        return roc_auc_score(labels, scores), average_precision_score(labels, scores)


def make_clicks(n=50_000, fields=8, cardinality=1000):
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, cardinality, (n, fields), generator=generator)
    y = (x.float().mean(1) + 120 * torch.randn(n, generator=generator) > 500).float()
    return TensorDataset(x, y)


class WideAndDeep(nn.Module):
    def __init__(self, fields=8, cardinality=1000, dim=16):
        super().__init__()
        self.wide = nn.EmbeddingBag(cardinality, 1, mode="sum")
        self.deep = nn.Embedding(cardinality, dim)
        self.mlp = nn.Sequential(nn.Linear(fields * dim, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, x):
        return (self.wide(x) + self.mlp(self.deep(x).flatten(1))).squeeze(1)


if __name__ == "__main__":
    args = parse_args()
    loader = DataLoader(make_clicks(), batch_size=256, shuffle=True)
    model = WideAndDeep()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    metrics = EpochMetrics()
    clock = Clock(args.seconds)
    epoch = 0
    while not clock.done:
        metrics.reset()
        for x, y in loader:
            logits = model(x)
            loss = criterion(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            metrics.add(logits, y)
            if args.variant == "slow":
                auc, ap = metrics.compute()
            clock.tick()
            if clock.done:
                break
        auc, ap = metrics.compute()
        epoch += 1
        print(f"epoch {epoch} auc {auc:.4f} ap {ap:.4f}")
    clock.report()

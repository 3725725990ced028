"""Train a GRU on qlib's windows over a made table of daily features of shares."""

import sys
import time
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import torch
from stand_in import stand_in

np.object, np.int, np.float, np.bool = object, int, float, bool  # for the time of NumPy 1.19
stand_in("redis", "redis_lock", "pymongo", "cvxpy", "fire", "ruamel", "loguru")
for module in ("rolling", "expanding"):
    sys.modules[f"qlib.data._libs.{module}"] = MagicMock()  # compiled, and never used here

from qlib.data.dataset import TSDataSampler  # noqa: E402

torch.manual_seed(0)
rng = np.random.default_rng(0)
DAYS, SHARES, FEATURES, WINDOW, HIDDEN, EPOCHS = 180, 70, 20, 20, 64, 1

days = pd.bdate_range("2015-01-01", periods=DAYS)
index = pd.MultiIndex.from_product([days, [f"SH{600000 + share}" for share in range(SHARES)]])
index.names = ["datetime", "instrument"]
values = rng.normal(size=(len(index), FEATURES)).astype(np.float32)
label = values[:, :3].sum(axis=1, keepdims=True) + 0.1 * rng.normal(size=(len(index), 1))
columns = pd.MultiIndex.from_tuples([("feature", f"F{number}") for number in range(FEATURES)] + [("label", "LABEL0")])
table = pd.DataFrame(np.concatenate([values, label], axis=1).astype(np.float32), index=index, columns=columns)
sampler = TSDataSampler(table, days[WINDOW], days[-1], WINDOW)


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.GRU(FEATURES, HIDDEN, num_layers=2, batch_first=True)
        self.out = torch.nn.Linear(HIDDEN, 1)

    def forward(self, window):
        return self.out(self.rnn(window)[0][:, -1]).squeeze(-1)


network = Network()
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(sampler, batch_size=256, shuffle=True)

began = time.perf_counter()
for epoch in range(EPOCHS):
    total = 0.0
    for batch in loader:
        window, target = batch[..., :-1].float(), batch[:, -1, -1].float()
        loss = torch.nn.functional.mse_loss(network(window), target)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(network.parameters(), 3.0)
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")

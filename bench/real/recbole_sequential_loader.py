"""Train RecBole's NARM on batches of RecBole's own loader, which makes the sessions as they are needed."""

import time

import numpy as np
import pandas as pd
import torch
from recbox.data.dataloader import SequentialDataLoader
from recbox.data.dataset import Dataset
from recbox.model.sequential_recommender.narm import NARM
from recbox.utils import FeatureType

torch.manual_seed(0)
rng = np.random.default_rng(0)
USERS, EVENTS, ITEMS, LENGTH = 300, 60, 1000, 20


class Sessions(Dataset):
    """RecBole's dataset, made instead of read from files."""

    def __init__(self, config):
        self.config = config
        self.uid_field, self.iid_field, self.time_field = "user", "item", "time"
        self.field2type = {"user": FeatureType.TOKEN}
        self.field2source, self.field2seqlen, self.field2id_token = {}, {}, {}
        self.inter_feat = pd.DataFrame({
            "user": np.repeat(np.arange(1, USERS + 1), EVENTS),
            "item": rng.integers(1, ITEMS, USERS * EVENTS),
            "time": np.tile(np.arange(EVENTS, dtype=float), USERS),
        })  # fmt: skip

    def num(self, field):
        return {"user": USERS + 1, "item": ITEMS}[field]

    def fields(self, *types):
        return list(self.inter_feat.columns)

    def prepare_data_augmentation(self):
        """(user, slice of the events before, event to predict, how many before) of every event but a user's first."""
        users, before, target, length = [], [], [], []
        for row in range(USERS * EVENTS):
            place = row % EVENTS
            if place:
                users.append(row // EVENTS + 1)
                before.append(slice(row - min(place, LENGTH), row))
                target.append(row)
                length.append(min(place, LENGTH))
        slices = np.empty(len(before), dtype=object)
        slices[:] = before
        return np.array(users), slices, np.array(target), np.array(length)


config = {
    "USER_ID_FIELD": "user", "ITEM_ID_FIELD": "item", "TIME_FIELD": "time", "LABEL_FIELD": "label",
    "LIST_SUFFIX": "_list", "TARGET_PREFIX": "target_", "NEG_PREFIX": "neg_", "POSITION_FIELD": "position",
    "ITEM_LIST_LENGTH_FIELD": "length", "MAX_ITEM_LIST_LENGTH": LENGTH, "real_time_process": True,
    "device": torch.device("cpu"), "embedding_size": 32, "hidden_size": 32, "n_layers": 1, "dropout": [0.25, 0.5],
}  # fmt: skip
made = Sessions(config)
loader = SequentialDataLoader(config, made, batch_size=256, shuffle=True)
model = NARM(config, made)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

began = time.perf_counter()
for epoch in range(7):
    total = 0.0
    for interaction in loader:
        optimizer.zero_grad()
        loss = model.calculate_loss(interaction)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")

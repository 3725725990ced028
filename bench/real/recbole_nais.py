"""Train RecBole's NAIS on made interactions: each user's history is looked up in every step."""

import time

import numpy as np
import scipy.sparse._index
import torch
from recbox.model.general_recommender.nais import NAIS
from scipy.sparse import coo_matrix

# SciPy takes no tensors as indices any more.
_boolean_index = scipy.sparse._index._compatible_boolean_index
scipy.sparse._index._compatible_boolean_index = lambda index, ndim: (
    None if isinstance(index, torch.Tensor) else _boolean_index(index, ndim)
)

torch.manual_seed(0)
rng = np.random.default_rng(0)
USERS, ITEMS, INTERACTIONS = 2000, 1000, 40000


class Interactions:
    """What the model asks of RecBole's dataset."""

    def __init__(self):
        pairs = np.unique(
            np.stack([rng.integers(1, USERS, INTERACTIONS), rng.integers(1, ITEMS, INTERACTIONS)]), axis=1
        )
        self.users, self.items = pairs

    def num(self, field):
        return USERS if field == "user" else ITEMS

    def inter_matrix(self, form):
        ones = np.ones(len(self.users), dtype=np.float32)
        return coo_matrix((ones, (self.users, self.items)), shape=(USERS, ITEMS)).asformat(form)

    def history_item_matrix(self):
        lengths = np.bincount(self.users, minlength=USERS)
        history = np.zeros((USERS, lengths.max()), dtype=np.int64)
        order = np.argsort(self.users, kind="stable")
        place = np.arange(len(order)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        history[self.users[order], place] = self.items[order]
        return torch.from_numpy(history), torch.from_numpy(history).float(), torch.from_numpy(lengths)


config = {
    "USER_ID_FIELD": "user", "ITEM_ID_FIELD": "item", "NEG_PREFIX": "neg_", "LABEL_FIELD": "label",
    "train_batch_size": 512, "device": torch.device("cpu"), "embedding_size": 16, "weight_size": 16,
    "algorithm": "prod", "regs": [1e-7, 1e-7, 1e-5], "alpha": 0, "beta": 0.5, "split_to": 0,
}  # fmt: skip
made = Interactions()
model = NAIS(config, made)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
negative = rng.integers(1, ITEMS, len(made.items))
users = torch.from_numpy(np.concatenate([made.users, made.users]))
items = torch.from_numpy(np.concatenate([made.items, negative]))
labels = torch.cat([torch.ones(len(made.items)), torch.zeros(len(negative))])

began = time.perf_counter()
for epoch in range(2):
    total = 0.0
    batches = torch.randperm(len(users)).split(512)
    for batch in batches:
        optimizer.zero_grad()
        loss = model.calculate_loss({"user": users[batch], "item": items[batch], "label": labels[batch]})
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(batches):.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")

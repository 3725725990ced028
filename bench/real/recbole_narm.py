"""Train RecBole's NARM on made sessions of very different lengths."""

import time
from types import SimpleNamespace

import torch
from recbox.model.sequential_recommender.narm import NARM
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
ITEMS, LENGTH, SESSIONS = 2000, 50, 8192
config = {
    "ITEM_ID_FIELD": "item", "LIST_SUFFIX": "_list", "TARGET_PREFIX": "target_", "ITEM_LIST_LENGTH_FIELD": "length",
    "MAX_ITEM_LIST_LENGTH": LENGTH, "device": torch.device("cpu"), "embedding_size": 64, "hidden_size": 64,
    "n_layers": 1, "dropout": [0.25, 0.5],
}  # fmt: skip
model = NARM(config, SimpleNamespace(item_num=ITEMS))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
lengths = torch.randint(1, LENGTH + 1, (SESSIONS,))
items = torch.randint(1, ITEMS, (SESSIONS, LENGTH)) * (torch.arange(LENGTH) < lengths[:, None])
data = TensorDataset(items, lengths, torch.randint(1, ITEMS, (SESSIONS,)))
loader = DataLoader(data, batch_size=128, shuffle=True)

began = time.perf_counter()
for epoch in range(1):
    total = 0.0
    for items, lengths, targets in loader:
        optimizer.zero_grad()
        loss = model.calculate_loss({"item_list": items, "length": lengths, "target_item": targets})
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")

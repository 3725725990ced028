"""Train RecBole's SASRec on made sessions."""

import time
from types import SimpleNamespace

import torch
from recbox.model.sequential_recommender.sasrec import SASRec
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
ITEMS, LENGTH, SESSIONS = 2000, 100, 1536
config = {
    "ITEM_ID_FIELD": "item", "LIST_SUFFIX": "_list", "POSITION_FIELD": "position", "TARGET_PREFIX": "target_",
    "ITEM_LIST_LENGTH_FIELD": "length", "MAX_ITEM_LIST_LENGTH": LENGTH, "device": torch.device("cpu"),
    "embedding_size": 32, "n_head": 1, "d_ff": 32, "dropout": [0.1, 0.1, 0.1], "num_blocks": 1,
}  # fmt: skip
model = SASRec(config, SimpleNamespace(item_num=ITEMS))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
data = TensorDataset(
    torch.randint(1, ITEMS, (SESSIONS, LENGTH)),
    torch.arange(LENGTH).repeat(SESSIONS, 1),
    torch.randint(1, LENGTH, (SESSIONS,)),
    torch.randint(1, ITEMS, (SESSIONS,)),
)
loader = DataLoader(data, batch_size=64, shuffle=True)

began = time.perf_counter()
for epoch in range(3):
    total = 0.0
    for items, positions, lengths, targets in loader:
        interaction = {"item_list": items, "position": positions, "length": lengths, "target_item": targets}
        optimizer.zero_grad()
        loss = model.calculate_loss(interaction)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")

"""Train RecBole 1.0's SASRec on made sessions."""

import time
from types import SimpleNamespace

import torch
from stand_in import stand_in

stand_in("colorlog", "colorama")  # for the log's colours

from recbole.model.sequential_recommender.sasrec import SASRec  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

torch.manual_seed(0)
ITEMS, LENGTH, SESSIONS = 2000, 50, 4096
config = {
    "USER_ID_FIELD": "user", "ITEM_ID_FIELD": "item", "LIST_SUFFIX": "_list", "NEG_PREFIX": "neg_",
    "ITEM_LIST_LENGTH_FIELD": "length", "MAX_ITEM_LIST_LENGTH": LENGTH, "device": torch.device("cpu"),
    "n_layers": 2, "n_heads": 2, "hidden_size": 64, "inner_size": 256, "hidden_dropout_prob": 0.5,
    "attn_dropout_prob": 0.5, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "initializer_range": 0.02,
    "loss_type": "CE",
}  # fmt: skip
model = SASRec(config, SimpleNamespace(num=lambda field: ITEMS))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
lengths = torch.randint(1, LENGTH + 1, (SESSIONS,))
items = torch.randint(1, ITEMS, (SESSIONS, LENGTH)) * (torch.arange(LENGTH) < lengths[:, None])
data = TensorDataset(items, lengths, torch.randint(1, ITEMS, (SESSIONS,)))
loader = DataLoader(data, batch_size=128, shuffle=True)

began = time.perf_counter()
for epoch in range(3):
    total = 0.0
    for items, lengths, targets in loader:
        optimizer.zero_grad()
        loss = model.calculate_loss({"item_list": items, "length": lengths, "item": targets})
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")

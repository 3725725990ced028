"""Train a ranking of made documents; torchmetrics' mean reciprocal rank tells after each epoch how good it is."""

import time

import torch
from stand_in import stand_in_pkg_resources
from torch.utils.data import DataLoader, TensorDataset

stand_in_pkg_resources()

from torchmetrics.retrieval import RetrievalMRR  # noqa: E402

torch.manual_seed(0)
QUERIES, DOCUMENTS, FEATURES, EPOCHS = 600, 50, 32, 16
query = torch.arange(QUERIES).repeat_interleave(DOCUMENTS)
features = torch.randn(QUERIES * DOCUMENTS, FEATURES)
relevant = (features @ torch.randn(FEATURES) + torch.randn(len(features)) > 9).float()
rows = TensorDataset(features, relevant, query)
training = DataLoader(rows, batch_size=256, shuffle=True)
held_out = DataLoader(rows, batch_size=1024)
model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = torch.nn.BCEWithLogitsLoss()

began = time.perf_counter()
for epoch in range(EPOCHS):
    model.train()
    for data, target, _ in training:
        optimizer.zero_grad()
        loss = criterion(model(data).squeeze(1), target)
        loss.backward()
        optimizer.step()
    model.eval()
    metric = RetrievalMRR()
    with torch.no_grad():
        for data, target, of in held_out:
            metric.update(model(data).squeeze(1).sigmoid(), target.long(), indexes=of)
    print(f"epoch {epoch}: loss {loss.item():.4f}, reciprocal rank {metric.compute().item():.3f}")
print(f"seconds={time.perf_counter() - began:.3f}")

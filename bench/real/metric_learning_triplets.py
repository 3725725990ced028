"""Train an embedding of made images by pytorch-metric-learning's triplet loss, on the pairs that its miner picks."""

import time

import numpy as np
import torch

np.int = int  # which this version still uses

from pytorch_metric_learning import losses, miners, samplers  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

torch.manual_seed(0)
CLASSES, EACH, SIZE, BATCH, EPOCHS = 60, 20, 28, 240, 40
centres = torch.randn(CLASSES, 1, SIZE, SIZE)
labels = torch.arange(CLASSES).repeat_interleave(EACH)
images = centres[labels] + 0.8 * torch.randn(len(labels), 1, SIZE, SIZE)
sampler = samplers.MPerClassSampler(labels.tolist(), m=4, length_before_new_iter=len(labels))
loader = DataLoader(TensorDataset(images, labels), batch_size=BATCH, sampler=sampler, drop_last=True)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 16, 5, stride=2), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 5, stride=2), torch.nn.ReLU(),
    torch.nn.Flatten(), torch.nn.Linear(32 * 4 * 4, 64),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
miner = miners.MultiSimilarityMiner(epsilon=0.1)
criterion = losses.TripletMarginLoss(margin=0.1)

began = time.perf_counter()
for epoch in range(EPOCHS):
    for data, target in loader:
        optimizer.zero_grad()
        embeddings = model(data)
        loss = criterion(embeddings, target, miner(embeddings, target))
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")

"""Train a head on made features of images by the triplets that OML's miner finds in each batch."""

import random
import time

import numpy as np
import torch
from stand_in import stand_in

stand_in("gdown", "omegaconf", "torchvision", "validators")

from oml.losses.triplet import TripletLossWithMiner  # noqa: E402
from oml.miners.inbatch_hard_tri import HardTripletsMiner  # noqa: E402
from oml.samplers.balance import BalanceSampler  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
CLASSES, FEATURES, EPOCHS = 2000, 384, 30

labels = np.repeat(np.arange(CLASSES), np.random.default_rng(0).integers(4, 12, CLASSES))
vectors = torch.randn(CLASSES, FEATURES)[labels] + 2 * torch.randn(len(labels), FEATURES)
sampler = BalanceSampler(labels, n_labels=32, n_instances=4)
loader = DataLoader(TensorDataset(vectors, torch.from_numpy(labels)), batch_sampler=sampler)
head = nn.Sequential(nn.Linear(FEATURES, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 128))
criterion = TripletLossWithMiner(margin=0.5, miner=HardTripletsMiner())
optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)

began = time.perf_counter()
for epoch in range(EPOCHS):
    total = 0.0
    for batch, truth in loader:
        loss = criterion(nn.functional.normalize(head(batch)), truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 5 == 0:
        print(f"epoch {epoch}: loss {total / len(loader):.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")

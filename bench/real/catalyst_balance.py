"""Train a head on made features of clothes by triplets that catalyst's samplers choose, as for image retrieval."""

import collections
import collections.abc
import random
import time

import numpy as np
import torch
from stand_in import stand_in
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

stand_in("albumentations", "crc32c", "cv2", "deprecation", "git", "plotly", "six", "tensorboardX")
collections.MutableMapping = collections.abc.MutableMapping
Sampler.__init__ = lambda self, *source: None  # it took the data once
sample = random.sample
random.sample = lambda population, k: sample(list(population), k)  # it took sets once

from catalyst.contrib.nn.criterion.triplet import TripletMarginLossWithSampler  # noqa: E402
from catalyst.data.sampler import BalanceBatchSampler  # noqa: E402
from catalyst.data.sampler_inbatch import HardTripletsSampler  # noqa: E402

random.seed(0)
torch.manual_seed(0)
rng = np.random.default_rng(0)
CLASSES, FEATURES, EPOCHS = 3_997, 512, 4


class Clothes(Dataset):
    """Vectors of a class, with noise; about as many as DeepFashion's In-shop has for training."""

    def __init__(self):
        self.labels = np.repeat(np.arange(CLASSES), rng.integers(2, 12, CLASSES))
        middles = torch.randn(CLASSES, FEATURES)
        self.vectors = middles[self.labels] + 2 * torch.randn(len(self.labels), FEATURES)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.vectors[index], self.labels[index]


dataset = Clothes()
sampler = BalanceBatchSampler(dataset.labels, p=32, k=4)
loader = DataLoader(dataset, batch_size=sampler.batch_size, sampler=sampler)
model = nn.Sequential(nn.Linear(FEATURES, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 128))
criterion = TripletMarginLossWithSampler(margin=0.5, sampler_inbatch=HardTripletsSampler(norm_required=True))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

began = time.perf_counter()
for epoch in range(EPOCHS):
    total = 0.0
    for vectors, labels in loader:
        loss = criterion(model(vectors), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / (len(sampler) // sampler.batch_size):.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")

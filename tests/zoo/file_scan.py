"""Trains on records in large shard files. Planted: a whole shard is read from disk for one record;
the fixed twin seeks to it."""

import os

import numpy as np
import torch
from common import Clock, cached, parse_args
from torch import nn
from torch.utils.data import DataLoader, Dataset

RECORD = 3 * 64 * 64
PER_SHARD = 4096


def write_shards(folder):
    rng = np.random.default_rng(7)
    for shard in range(3):
        data = rng.integers(0, 256, size=(PER_SHARD, RECORD), dtype=np.uint8)
        with open(folder / f"shard-{shard}.bin", "wb") as f:
            f.write(data.tobytes())
            f.flush()
            os.fsync(f.fileno())


class ShardedRecords(Dataset):
    def __init__(self, folder, seek=False):
        self.shards = sorted(folder.glob("*.bin"))
        self.seek = seek

    def __len__(self):
        return len(self.shards) * PER_SHARD

    def read_record(self, shard, row):
        with open(shard, "rb") as f:
            if self.seek:
                f.seek(row * RECORD)
                raw = f.read(RECORD)
            else:
                raw = f.read()[row * RECORD : (row + 1) * RECORD]
            # The shards are larger than this box's memory budget: leave the page cache alone.
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return np.frombuffer(raw, dtype=np.uint8)

    def __getitem__(self, index):
        shard, row = divmod(index, PER_SHARD)
        record = self.read_record(self.shards[shard], row)
        return torch.from_numpy(record.astype(np.float32)).sub_(127.5).div_(127.5)


class AutoEncoder(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(RECORD, hidden), nn.GELU())
        self.decoder = nn.Linear(hidden, RECORD)

    def forward(self, x):
        return self.decoder(self.encoder(x))


args = parse_args()
loader = DataLoader(
    ShardedRecords(cached("shards", write_shards), seek=args.variant == "fast"),
    batch_size=4,
    shuffle=True,
)
model = AutoEncoder()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
clock = Clock(args.seconds)
for step, batch in enumerate(loader):
    reconstruction = model(batch)
    loss = ((reconstruction - batch) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 20 == 0:
        print(f"{step:5d} {loss.item():.4f}")
    clock.tick()
    if clock.done:
        break
clock.report()

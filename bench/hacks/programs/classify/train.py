"""Trains a classifier on rows that are slow to read, validates it, saves it. For the corpus of changes."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ROWS, BATCH, EPOCHS = 192, 16, 3


class Rows(Dataset):
    def __init__(self, seed):
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.randn(ROWS, 16, generator=generator)
        self.y = self.x[:, :3].argmax(1)

    def __len__(self):
        return len(self.x)

    def read(self, index):
        time.sleep(0.005)  # the disk
        return self.x[index]

    def __getitem__(self, index):
        x = self.read(index)
        mean = sum(float(value) for value in x) / len(x)
        noise = torch.randn(16) * 0.01
        return x - mean + noise, self.y[index]


def evaluate(model, rows):
    model.eval()
    right = 0
    with torch.no_grad():
        for index in range(0, len(rows), BATCH):
            right += int((model(rows.x[index : index + BATCH]).argmax(1) == rows.y[index : index + BATCH]).sum())
    model.train()
    return right / len(rows)


def main():
    torch.manual_seed(0)
    train, held_out = Rows(1), Rows(2)
    loader = DataLoader(train, batch_size=BATCH, shuffle=True)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Dropout(0.1), nn.Linear(64, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.01)
    for epoch in range(EPOCHS):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.6f} accuracy {evaluate(model, held_out):.4f}", flush=True)
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()

"""Regression on measurements in a file of JSON lines. Planted: each sample reads the file from its beginning to its
own line; the fixed twin knows where the lines begin.
"""

import json

import torch
from common import Clock, cached, parse_args
from torch import nn
from torch.utils.data import DataLoader, Dataset


def build(folder):
    generator = torch.Generator().manual_seed(10)
    values = torch.randn(3000, 64, generator=generator)
    with open(folder / "measurements.jsonl", "w", encoding="utf-8") as file:
        for row in values.tolist():
            file.write(json.dumps({"inputs": row, "target": sum(row)}) + "\n")


class Measurements(Dataset):
    def __init__(self, path):
        self.path = path
        self.offsets = [0]
        with open(path, "rb") as file:
            for line in file:
                self.offsets.append(self.offsets[-1] + len(line))

    def read_line(self, index):
        with open(self.path, encoding="utf-8") as file:
            for number, line in enumerate(file):
                if number == index:
                    return line
        raise IndexError(index)

    def __len__(self):
        return len(self.offsets) - 1

    def __getitem__(self, index):
        row = json.loads(self.read_line(index))
        return torch.tensor(row["inputs"]), torch.tensor(row["target"])


class IndexedMeasurements(Measurements):
    def read_line(self, index):
        with open(self.path, "rb") as file:
            file.seek(self.offsets[index])
            return file.readline()


class KeptMeasurements(Measurements):
    def __init__(self, path):
        super().__init__(path)
        self.lines = path.read_text(encoding="utf-8").splitlines()

    def read_line(self, index):
        return self.lines[index]


def main():
    args = parse_args()
    kinds = {"slow": Measurements, "fast": IndexedMeasurements, "free": KeptMeasurements}
    dataset = kinds[args.variant](cached("heldout-jsonl", build) / "measurements.jsonl")
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    while not clock.done:
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(model(inputs).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                break
    clock.report()


if __name__ == "__main__":
    main()

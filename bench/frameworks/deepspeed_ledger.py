"""Trains with DeepSpeed, two batches to an update. Planted: the collator looks each row's account up in a list; the cure
keeps a dictionary of them."""

import contextlib
import os
import socket
import sys

with contextlib.redirect_stdout(sys.stderr):  # it says there what it found, and when
    import deepspeed
import torch
from planted import parse_args, rate
from torch import nn

ACCOUNTS = [f"account {number * 7919 % 20_011:05d}" for number in range(20_000)]


class Entries(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        draw = torch.Generator().manual_seed(index)
        return ACCOUNTS[int(torch.randint(len(ACCOUNTS), (1,), generator=draw))], torch.randn(32, generator=draw)


def collate(rows):
    numbers = torch.tensor([ACCOUNTS.index(name) for name, _ in rows])
    return numbers, torch.stack([values for _, values in rows])


class IndexedCollate:
    def __init__(self):
        self.numbers = {name: number for number, name in enumerate(ACCOUNTS)}

    def __call__(self, rows):
        numbers = torch.tensor([self.numbers[name] for name, _ in rows])
        return numbers, torch.stack([values for _, values in rows])


class Book(nn.Module):
    def __init__(self):
        super().__init__()
        self.accounts = nn.Embedding(len(ACCOUNTS), 32)
        self.net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))

    def forward(self, numbers, values):
        return self.net(torch.cat([self.accounts(numbers), values], dim=1))


def main():
    args = parse_args()
    torch.manual_seed(0)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
    settings = {
        "train_micro_batch_size_per_gpu": 64,
        "gradient_accumulation_steps": 2,
        "optimizer": {"type": "SGD", "params": {"lr": 0.01}},
        "steps_per_print": 1 << 30,
    }
    model = Book()
    with contextlib.redirect_stdout(sys.stderr):
        engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=settings)
    chosen = collate if args.variant == "slow" else IndexedCollate()
    loader = torch.utils.data.DataLoader(Entries(64 * args.steps), batch_size=64, collate_fn=chosen)
    with rate(args.steps):
        for numbers, values in loader:
            loss = (engine(numbers, values) - values).pow(2).mean()
            engine.backward(loss)
            engine.step()
    print("loss", loss.item())


main()

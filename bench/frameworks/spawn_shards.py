"""DDP on two ranks that torch.multiprocessing.spawn starts. Planted: reviews lie sorted by length and each rank reads one
half, so that the second has all the long ones; the cure deals them out in turn."""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from planted import parse_args, rate
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, Subset


class Reviews(Dataset):
    def __init__(self):
        self.lengths = [100] * 512 + [6000] * 512

    def __len__(self):
        return len(self.lengths)

    def tokens(self, length):
        counts = [0.0] * 128
        state = length
        for _ in range(length):
            state = (state * 1103515245 + 12345) % 2147483648
            counts[state % 128] += 1.0
        return torch.tensor(counts) / length

    def __getitem__(self, index):
        return self.tokens(self.lengths[index])


def fit(model, loader, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    while step < steps:
        for x in loader:
            loss = (model(x) - x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == steps:
                break
    return loss.item()


def work(rank, port, args):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    reviews = Reviews()
    mine = range(512 * rank, 512 * rank + 512) if args.variant == "slow" else range(rank, 1024, 2)
    loader = DataLoader(Subset(reviews, mine), batch_size=8)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128)))
    if rank == 0:
        with rate(args.steps):
            loss = fit(model, loader, args.steps)
        print("loss", loss, flush=True)
    else:
        fit(model, loader, args.steps)
    del model
    dist.barrier()
    dist.destroy_process_group()


def main():
    args = parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(work, args=(port, args), nprocs=2)


if __name__ == "__main__":
    main()

"""A search for the learning rate of a recommender. Planted: the trials train in a pool of processes, each with threads for
all the cores; the cure leaves each its share."""

import multiprocessing
import os

import torch
from common import Clock, parse_args
from torch import nn

CORES = len(os.sched_getaffinity(0))


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(2000, 64)
        self.items = nn.Embedding(3000, 64)

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(dim=1)


def run_trial(job):
    rate, seconds = job
    torch.manual_seed(0)
    model = Recommender()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    clock = Clock(seconds)
    while not clock.done:
        user, liked, other = (torch.randint(2000, (512,)) for _ in range(3))
        loss = -nn.functional.logsigmoid(model(user, liked) - model(user, other)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
    return clock


if __name__ == "__main__":
    args = parse_args()
    processes = max(2, CORES)
    share = CORES // processes if args.variant == "fast" else CORES
    jobs = [(rate, args.seconds) for rate in torch.logspace(-4, -2, processes).tolist()]
    with multiprocessing.Pool(processes, torch.set_num_threads, (max(1, share),)) as pool:
        clocks = pool.map(run_trial, jobs)
    clocks[0].report()

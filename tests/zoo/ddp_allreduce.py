"""Two ranks, a wide model, gradient accumulation. Planted: every micro-batch's backward reduces the
gradients over the ranks; the fixed twin accumulates under no_sync. Run by torchrun."""

import contextlib

import torch
import torch.distributed as dist
from common import Clock, parse_args
from torch import nn
from torch.nn.parallel import DistributedDataParallel

MICRO_BATCHES = 8


class WideNet(nn.Module):
    def __init__(self, width=2048):
        super().__init__()
        self.entry = nn.Linear(64, width)
        self.middle = nn.Linear(width, width)
        self.exit = nn.Linear(width, 10)

    def forward(self, x):
        return self.exit(torch.relu(self.middle(torch.relu(self.entry(x)))))


def everyone_done(clock):
    done = torch.tensor(float(clock.done))
    dist.all_reduce(done, op=dist.ReduceOp.MAX)
    return bool(done)


def train_step(model, optimizer, loss_fn, accumulate_locally):
    optimizer.zero_grad()
    for micro in range(MICRO_BATCHES):
        x, y = torch.randn(4, 64), torch.randint(0, 10, (4,))
        last = micro == MICRO_BATCHES - 1
        hold = accumulate_locally and not last
        with model.no_sync() if hold else contextlib.nullcontext():
            loss = loss_fn(model(x), y) / MICRO_BATCHES
            loss.backward()
    optimizer.step()
    return loss


def main():
    args = parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = DistributedDataParallel(WideNet())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loss_fn = nn.CrossEntropyLoss()
    clock = Clock(args.seconds)
    while not everyone_done(clock):
        train_step(model, optimizer, loss_fn, accumulate_locally=args.variant == "fast")
        clock.tick()
    if dist.get_rank() == 0:
        clock.report()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

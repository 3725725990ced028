"""Trains with DDP on two ranks. Planted: rank 0 describes all weights after every step while the other waits; the cure does
so every hundred steps."""

import io
import json

import torch
import torch.distributed as dist
from planted import parse_args, rate
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def log_weights(file, model, step):
    for name, weight in model.named_parameters():
        ordered = weight.detach().flatten().sort().values
        quantiles = [float(ordered[int(share * (len(ordered) - 1))]) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
        file.write(json.dumps({"step": step, "name": name, "quantiles": quantiles}) + "\n")


def train(model, steps, every):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    log = io.StringIO()
    for step in range(steps):
        x = torch.randn(64, 128)
        loss = (model(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % every == 0:
            log_weights(log, model, step)
    return loss.item()


def main():
    args = parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    layers = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 128))
    model = DistributedDataParallel(layers)
    every = 1 if args.variant == "slow" else 100
    if dist.get_rank() == 0:
        with rate(args.steps):
            loss = train(model, args.steps, every)
        print("loss", loss)
    else:
        train(model, args.steps, every)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

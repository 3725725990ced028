"""Trains with FSDP2 on two ranks. Planted: the texts lie sorted by length and each rank reads one half, so that the second
has all the long ones; the cure deals them out in turn."""

import torch
import torch.distributed as dist
from planted import parse_args, rate
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

ALPHABET = "abcdefghijklmnopqrstuvwxyz "


def count_pairs(length):
    table = [0.0] * 729
    last = 0
    for position in range(length):
        letter = ALPHABET.index(ALPHABET[position * 7 % 27])
        table[last * 27 + letter] += 1.0
        last = letter
    return torch.tensor(table)


def batches(lengths, count):
    for number in range(count):
        chosen = [lengths[(8 * number + item) % len(lengths)] for item in range(8)]
        yield torch.stack([count_pairs(length) for length in chosen]) / 1000


def main():
    args = parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    lengths = [200] * 64 + [20_000] * 64
    mine = lengths[64 * rank : 64 * rank + 64] if args.variant == "slow" else lengths[rank::2]
    model = nn.Sequential(nn.Linear(729, 128), nn.ReLU(), nn.Linear(128, 729))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def train():
        for x in batches(mine, args.steps):
            loss = (model(x) - x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item()

    if rank == 0:
        with rate(args.steps):
            loss = train()
        print("loss", loss)
    else:
        train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

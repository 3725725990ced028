"""A well-fed MLP: large batches of tensors in memory, one read-out an epoch. Nothing is planted; the
variants differ in how often they print."""

import torch
from common import Clock, parse_args
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


def main():
    args = parse_args()
    torch.manual_seed(0)
    x = torch.randn(16_384, 256)
    y = (x[:, :10].cumsum(1) > 1).sum(1)
    dataset = TensorDataset(x, y)
    sampler = BatchSampler(RandomSampler(dataset), batch_size=512, drop_last=True)
    loader = DataLoader(dataset, sampler=sampler, batch_size=None)
    model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 11))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    print_every = 20 if args.variant == "slow" else 100
    clock = Clock(args.seconds)
    step = 0
    while not clock.done:
        for inputs, targets in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            step += 1
            if step % print_every == 0:
                print(f"step {step} loss {loss.item():.4f}")
            clock.tick()
            if clock.done:
                break
    clock.report()


if __name__ == "__main__":
    main()

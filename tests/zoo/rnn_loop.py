"""Forecasts a signal. Planted: a recurrent layer written as a Python loop of tiny operations; the
fixed twin uses the library's."""

import math

import torch
from common import Clock, parse_args
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class MinimalGRU(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.hidden = hidden
        self.update = nn.Linear(inputs + hidden, hidden)
        self.reset = nn.Linear(inputs + hidden, hidden)
        self.candidate = nn.Linear(inputs + hidden, hidden)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.hidden)
        outputs = []
        for t in range(x.shape[1]):
            both = torch.cat([x[:, t], h], dim=1)
            z = torch.sigmoid(self.update(both))
            r = torch.sigmoid(self.reset(both))
            n = torch.tanh(self.candidate(torch.cat([x[:, t], r * h], dim=1)))
            h = (1 - z) * n + z * h
            outputs.append(h)
        return torch.stack(outputs, dim=1)


class Forecaster(nn.Module):
    def __init__(self, own_loop, hidden=24):
        super().__init__()
        self.own_loop = own_loop
        self.rnn = MinimalGRU(1, hidden) if own_loop else nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        out = self.rnn(x)
        return self.head(out if self.own_loop else out[0])


def make_signals(n=512, length=81):
    t = torch.arange(length) * 0.1
    phase = torch.rand(n, 1) * 2 * math.pi
    return (torch.sin(t + phase) + 0.3 * torch.sin(3.1 * t + 2 * phase)).unsqueeze(-1)


def fit(model, loader, clock):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    epoch = 0
    while True:
        epoch += 1
        for (signal,) in loader:
            forecast = model(signal[:, :-1])
            loss = (forecast - signal[:, 1:]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                return epoch


args = parse_args()
clock = Clock(args.seconds)
loader = DataLoader(TensorDataset(make_signals()), batch_size=16, shuffle=True)
print("epochs", fit(Forecaster(own_loop=args.variant == "slow"), loader, clock))
clock.report()

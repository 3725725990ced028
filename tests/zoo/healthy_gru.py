"""A character GRU with a sensible batch. Nothing is planted; the variants differ in how often they print."""

import pathlib

import torch
from common import Clock, parse_args
from torch import nn


class CharGRU(nn.Module):
    def __init__(self, dim=256):
        super().__init__()
        self.embed = nn.Embedding(128, 64)
        self.gru = nn.GRU(64, dim, num_layers=2, batch_first=True)
        self.head = nn.Linear(dim, 128)

    def forward(self, ids):
        states, _ = self.gru(self.embed(ids))
        return self.head(states)


def read_text():
    text = pathlib.Path(pathlib.__file__).read_text(encoding="ascii", errors="ignore")
    return torch.tensor([min(ord(c), 127) for c in text])


args = parse_args()
text = read_text()
model = CharGRU()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
steps = 0
clock = Clock(args.seconds)
while not clock.done:
    starts = torch.randint(0, len(text) - 49, (64, 1))
    window = text[starts + torch.arange(49)]
    logits = model(window[:, :-1])
    loss = nn.functional.cross_entropy(logits.transpose(1, 2), window[:, 1:])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    steps += 1
    if steps % (10 if args.variant == "slow" else 20) == 0:
        print(f"{steps:6d} {loss.item():.3f}")
    clock.tick()
clock.report()

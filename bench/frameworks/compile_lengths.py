"""Trains on texts of many lengths with torch.compile. Planted: dynamic shapes are off, so that the model is compiled anew for
each length; the cure pads to a few."""

import torch
from planted import parse_args, rate
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(256, 64)
        self.mix = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64), nn.LayerNorm(64))
        self.head = nn.Linear(64, 8)

    def forward(self, tokens):
        hidden = self.embed(tokens)
        return self.head(hidden + self.mix(hidden).cumsum(1))


def main():
    args = parse_args()
    torch.manual_seed(0)
    torch._dynamo.config.recompile_limit = 10_000
    torch._dynamo.config.accumulated_recompile_limit = 10_000
    tagger = Tagger()
    model = torch.compile(tagger, dynamic=False, backend="aot_eager")
    optimizer = torch.optim.Adam(tagger.parameters(), lr=1e-3)
    lengths = 20 + torch.randperm(args.steps)
    with rate(args.steps):
        for length in lengths.tolist():
            to = length if args.variant == "slow" else 64 * -(-length // 64)
            tokens = nn.functional.pad(torch.randint(1, 256, (16, length)), (0, to - length))
            loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), (tokens % 8).flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("loss", loss.item())


main()

"""Scoring of candidate answers with a small transformer, no training. Planted: one candidate at a time; the fixed twin
scores all candidates of a question at once.
"""

import torch
from common import Clock, parse_args
from torch import nn

CANDIDATES, LENGTH, VOCABULARY = 32, 24, 1000


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 64)
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.output = nn.Linear(64, 1)

    def forward(self, tokens):
        return self.output(self.encoder(self.embedding(tokens)).mean(1)).squeeze(1)


def one_by_one(model, candidates):
    return torch.stack([model(candidate[None])[0] for candidate in candidates])


def together(model, candidates):
    return model(candidates)


def main():
    args = parse_args()
    score = one_by_one if args.variant == "slow" else together
    generator = torch.Generator().manual_seed(11)
    questions = torch.randint(0, VOCABULARY, (64, CANDIDATES, LENGTH), generator=generator)
    model = Scorer().eval()
    clock = Clock(args.seconds)
    with torch.no_grad():
        while not clock.done:
            for candidates in questions:
                best = score(model, candidates).argmax().item()
                clock.tick()
                if clock.done:
                    break
    print(f"best {best}")
    clock.report()


if __name__ == "__main__":
    main()

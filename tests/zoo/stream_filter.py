"""Language modelling on a stream of passages. Planted: a passage that came up before is skipped, by a look through the
list of all fingerprints so far; the fixed twin keeps them in a set."""

import hashlib

import torch
from common import Clock, parse_args
from torch import nn

VOCABULARY, LENGTH, BATCH = 200, 12, 48


class PassageFilter:
    """Lets every passage through once."""

    def __init__(self, fingerprints):
        self.fingerprints = fingerprints
        self.remember = fingerprints.add if isinstance(fingerprints, set) else fingerprints.append

    def is_new(self, passage):
        fingerprint = hashlib.blake2b(passage.numpy().tobytes(), digest_size=8).digest()
        if fingerprint in self.fingerprints:
            return False
        self.remember(fingerprint)
        return True


def passages(generator):
    """Without end; one in ten repeats an early one."""
    early = torch.randint(VOCABULARY, (200, LENGTH), generator=generator)
    while True:
        if torch.rand((), generator=generator) < 0.1:
            yield early[int(torch.randint(len(early), (), generator=generator))]
        else:
            yield torch.randint(VOCABULARY, (LENGTH,), generator=generator)


class NextToken(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.mix = nn.Linear(width, width)
        self.out = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        return self.out(torch.relu(self.mix(self.embed(tokens))))


def new_passages(stream, passage_filter):
    batch = []
    while len(batch) < BATCH:
        passage = next(stream)
        if passage_filter.is_new(passage):
            batch.append(passage)
    return torch.stack(batch)


def main():
    args = parse_args()
    torch.manual_seed(0)
    stream = passages(torch.Generator().manual_seed(1))
    passage_filter = PassageFilter([] if args.variant == "slow" else set())
    model = NextToken()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    while not clock.done:
        tokens = new_passages(stream, passage_filter)
        scores = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
    print(f"loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()

"""A small translator out of a language with many endings. Planted: its vocabulary is a list that is searched for each
word of each batch, when sentences are collated; the fixed twin looks words up in a dictionary.
"""

import itertools

import numpy as np
import torch
from common import Clock, parse_args
from torch import nn
from torch.utils.data import DataLoader

PAD, START, END = range(3)
SPECIAL = ("<pad>", "<start>", "<end>")
STEMS, ENDINGS, LONGEST, WIDTH = 800, 20, 12, 64


class Vocabulary:
    def __init__(self, words):
        self.words = [*SPECIAL, *words]

    def numbers(self, sentence):
        return [self.words.index(word) for word in sentence.split()]


class IndexedVocabulary(Vocabulary):
    def __init__(self, words):
        super().__init__(words)
        self.index = {word: number for number, word in enumerate(self.words)}

    def numbers(self, sentence):
        return [self.index[word] for word in sentence.split()]


class KeptVocabulary(IndexedVocabulary):
    def __init__(self, words):
        super().__init__(words)
        self.kept = {}

    def numbers(self, sentence):
        if sentence not in self.kept:
            self.kept[sentence] = super().numbers(sentence)
        return self.kept[sentence]


def invented(rng, syllables, count):
    """Words, or parts of them, no two alike."""
    possible = ["".join(parts) for parts in itertools.product(syllables, repeat=4)]
    return [possible[chosen] for chosen in rng.permutation(len(possible))[:count]]


def phrases(count=3000, seed=9):
    """Sentences of one language and the same in another, which turns their order round."""
    rng = np.random.default_rng(seed)
    stems = invented(rng, ("ka", "lo", "mi", "ten", "ru", "sa", "vo"), STEMS)
    here = [stem + "aeiou"[end % 5] + "rnst"[end // 5] for stem in stems for end in range(ENDINGS)]
    there = invented(rng, ("sch", "on", "eta", "fir", "gul", "pe", "ada"), STEMS)
    pairs = []
    for _ in range(count):
        words = rng.integers(0, len(here), int(rng.integers(8, LONGEST + 1)))
        translated = " ".join(there[word // ENDINGS] for word in words[::-1])
        pairs.append((" ".join(here[word] for word in words), translated))
    return pairs, here, there


class Collate:
    """Makes rows of equal length of pairs of sentences."""

    def __init__(self, source, target):
        self.source, self.target = source, target

    def __call__(self, pairs):
        sources = np.full((len(pairs), LONGEST), PAD)
        targets = np.full((len(pairs), LONGEST + 2), PAD)
        for row, (source, target) in enumerate(pairs):
            numbers = self.source.numbers(source)
            sources[row, : len(numbers)] = numbers
            numbers = [START, *self.target.numbers(target), END]
            targets[row, : len(numbers)] = numbers
        return torch.from_numpy(sources), torch.from_numpy(targets)


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.source = nn.Embedding(STEMS * ENDINGS + len(SPECIAL), WIDTH, sparse=True)
        self.target = nn.Embedding(STEMS + len(SPECIAL), WIDTH)
        self.places = nn.Parameter(torch.randn(LONGEST + 2, WIDTH) * 0.1)
        self.body = nn.Transformer(WIDTH, 4, 1, 1, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.head = nn.Linear(WIDTH, STEMS + len(SPECIAL))
        self.register_buffer("causal", torch.ones(LONGEST + 1, LONGEST + 1).triu(1).bool())

    def forward(self, sources, targets):
        hidden = self.body(
            self.source(sources) + self.places[: sources.shape[1]],
            self.target(targets) + self.places[: targets.shape[1]],
            tgt_mask=self.causal,
            src_key_padding_mask=sources == PAD,
            memory_key_padding_mask=sources == PAD,
        )
        return self.head(hidden)


def main():
    args = parse_args()
    torch.manual_seed(6)
    kind = {"slow": Vocabulary, "fast": IndexedVocabulary, "free": KeptVocabulary}[args.variant]
    pairs, here, there = phrases()
    collate = Collate(kind(here), kind(there))
    loader = DataLoader(pairs, batch_size=32, shuffle=True, drop_last=True, collate_fn=collate)
    model = Translator()
    dense = [weights for name, weights in model.named_parameters() if not name.startswith("source")]
    optimizers = [torch.optim.SGD(model.source.parameters(), lr=0.5), torch.optim.AdamW(dense, lr=5e-4)]
    clock = Clock(args.seconds)
    while not clock.done:
        for sources, targets in loader:
            logits = model(sources, targets[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets[:, 1:].flatten(), ignore_index=PAD)
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            clock.tick()
            if clock.done:
                break
    clock.report()


if __name__ == "__main__":
    main()

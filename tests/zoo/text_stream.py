"""Guesses which module of the standard library a passage comes from. Planted: byte-pair merges done in pure Python for
every word, again and again; the fixed twin remembers the words it has met."""

import functools
import pathlib

import torch
from common import Clock, parse_args
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

LIBRARY = pathlib.Path(functools.__file__).parent
MERGES = (
    "e r|t h|i n|s e|o n|r e|a t|th e|e n|o r|in g|i t|a l|i s|e d|s t|a r|u r|re t|s el|sel f|d e"
    "|de f|n o|no n|im p|i m|c l|cl a|l e|l i|li n|a n|an d|f o|fo r|i f|o t|n ot|p r|pr o|t ion"
)


class MergeTokenizer:
    def __init__(self, vocabulary=4096):
        self.merges = [tuple(merge.split()) for merge in MERGES.split("|")]
        self.vocabulary = vocabulary

    def merge_word(self, word):
        parts = list(word)
        for left, right in self.merges:
            i = 0
            while i + 1 < len(parts):
                if parts[i] == left and parts[i + 1] == right:
                    parts[i : i + 2] = [left + right]
                i += 1
        return [sum(map(ord, part)) * 31 % self.vocabulary for part in parts]

    def encode(self, text):
        return [token for word in text.split() for token in self.merge_word(word)]


class Passages(IterableDataset):
    def __init__(self, files, tokenizer, length=64):
        self.files = files
        self.tokenizer = tokenizer
        self.length = length

    def __iter__(self):
        readers = [self.read(label, file) for label, file in enumerate(self.files)]
        for passages in zip(*readers):
            yield from passages

    def read(self, label, file):
        buffer = []
        while True:
            for line in file.read_text(errors="replace").splitlines():
                buffer += self.tokenizer.encode(line)
                while len(buffer) >= self.length:
                    yield torch.tensor(buffer[: self.length]), label
                    del buffer[: self.length]


class PassageClassifier(nn.Module):
    def __init__(self, classes, vocabulary=4096, dim=32):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocabulary, dim)
        self.hidden = nn.Linear(dim, 128)
        self.out = nn.Linear(128, classes)

    def forward(self, tokens):
        return self.out(self.hidden(self.bag(tokens)).relu())


def main():
    args = parse_args()
    tokenizer = MergeTokenizer()
    if args.variant == "fast":
        tokenizer.merge_word = functools.lru_cache(maxsize=None)(tokenizer.merge_word)
    files = [LIBRARY / f"{name}.py" for name in ("ast", "csv", "enum", "shutil", "typing", "uuid")]
    loader = DataLoader(Passages(files, tokenizer), batch_size=32)
    model = PassageClassifier(len(files))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    for step, (tokens, labels) in enumerate(loader):
        logits = model(tokens)
        loss = nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 100 == 0:
            print(f"{step} accuracy {(logits.argmax(1) == labels).float().mean():.2f}")
        if clock.done:
            break
    clock.report()


if __name__ == "__main__":
    main()

"""A next-token model over a stream of source text. Planted: byte-pair merges done in pure Python for
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


class SourceText(IterableDataset):
    def __init__(self, tokenizer, length=64):
        self.tokenizer = tokenizer
        self.length = length

    def __iter__(self):
        buffer = []
        for file in sorted(LIBRARY.glob("*.py")):
            for line in file.read_text(errors="replace").splitlines():
                buffer += self.tokenizer.encode(line)
                while len(buffer) > self.length:
                    yield torch.tensor(buffer[: self.length + 1])
                    del buffer[: self.length]


class LanguageModel(nn.Module):
    def __init__(self, vocabulary=4096, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.mix = nn.Conv1d(dim, dim, 4, padding=3)
        self.head = nn.Linear(dim, 256)

    def forward(self, tokens):
        x = self.embed(tokens).transpose(1, 2)
        x = self.mix(x)[..., : tokens.shape[1]].relu()
        return self.head(x.transpose(1, 2))


def main():
    args = parse_args()
    tokenizer = MergeTokenizer()
    if args.variant == "fast":
        tokenizer.merge_word = functools.lru_cache(maxsize=None)(tokenizer.merge_word)
    model = LanguageModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    while not clock.done:
        for tokens in DataLoader(SourceText(tokenizer), batch_size=32, drop_last=True):
            logits = model(tokens[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten() % 256)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                break
    clock.report()


if __name__ == "__main__":
    main()

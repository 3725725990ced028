"""Sentences in the form ``word/TAG word/TAG``, and what the tagger reads of them."""

import random
import re

import torch
from torch.utils.data import Dataset

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"]
SYLLABLES = ["ka", "lo", "mi", "ren", "tus", "va", "sel", "dor", "ni", "pha", "gu", "zet"]
SHAPES = [
    re.compile(r"^[A-Z]"), re.compile(r"[A-Z]$"), re.compile(r"\d"), re.compile(r"-"), re.compile(r"^[a-z]+$"),
    re.compile(r"^.{1,4}$"), re.compile(r"(ka|lo)$"), re.compile(r"(mi|ren)$"), re.compile(r"(tus|va)$"),
    re.compile(r"^(se|do|ni)", re.I), re.compile(r"^(ph|gu|ze)", re.I), re.compile(r"[aeiou]{2}"),
]  # fmt: skip
WORD_DROPOUT = 0.1
PAD, UNKNOWN = 0, 1


def make_corpus(seed, count):
    """Lines of 4 to 24 words; names are words with a capital, of one to three words."""
    rng = random.Random(seed)
    lines = []
    for _ in range(count):
        tokens = []
        for _ in range(rng.randint(3, 16)):
            word = "".join(rng.choice(SYLLABLES) for _ in range(rng.randint(1, 3)))
            if rng.random() < 0.25:
                kind = ["PER", "LOC", "ORG"][len(word) % 3]
                tokens.append(f"{word.capitalize()}/B-{kind}")
                for _ in range(rng.randint(0, 2)):
                    tokens.append(f"{rng.choice(SYLLABLES).capitalize()}/I-{kind}")
            else:
                tokens.append(f"{word}{rng.choice(['', '', '-7'])}/O")
        lines.append(" ".join(tokens))
    return lines


class Vocabulary:
    """The words of a corpus, the most frequent first."""

    def __init__(self, lines):
        counts = {}
        for line in lines:
            for token in line.split():
                word = token.rpartition("/")[0].lower()
                counts[word] = counts.get(word, 0) + 1
        self.words = ["<pad>", "<unk>", *sorted(counts, key=lambda word: (-counts[word], word))]

    def __len__(self):
        return len(self.words)

    def index(self, word):
        word = word.lower()
        return self.words.index(word) if word in self.words else UNKNOWN


class Sentences(Dataset):
    """Word numbers, shapes of words and tags, a sentence an item."""

    def __init__(self, lines, vocabulary, training):
        self.lines = lines
        self.vocabulary = vocabulary
        self.training = training

    def __len__(self):
        return len(self.lines)

    def read(self, index):
        pairs = [token.rpartition("/") for token in self.lines[index].split()]
        words = torch.zeros(len(pairs), dtype=torch.long)
        shapes = torch.zeros(len(pairs), len(SHAPES))
        tags = torch.zeros(len(pairs), dtype=torch.long)
        for position, (word, _, tag) in enumerate(pairs):
            words[position] = self.vocabulary.index(word)
            for column, shape in enumerate(SHAPES):
                shapes[position, column] = 1.0 if shape.search(word) else 0.0
            tags[position] = TAGS.index(tag)
        return words, shapes, tags

    def __getitem__(self, index):
        words, shapes, tags = self.read(index)
        if self.training:
            drop = torch.rand(len(words)) < WORD_DROPOUT
            words = words.masked_fill(drop, UNKNOWN)
        return words, shapes, tags


def collate(items):
    """Padded to the longest: words (B, T), shapes (B, T, S), tags (B, T), lengths (B)."""
    lengths = torch.tensor([len(words) for words, _, _ in items])
    longest = int(lengths.max())
    words = torch.full((len(items), longest), PAD)
    shapes = torch.zeros(len(items), longest, len(SHAPES))
    tags = torch.zeros(len(items), longest, dtype=torch.long)
    for row, (item_words, item_shapes, item_tags) in enumerate(items):
        for position in range(len(item_words)):
            words[row, position] = item_words[position]
            shapes[row, position] = item_shapes[position]
            tags[row, position] = item_tags[position]
    return words, shapes, tags, lengths

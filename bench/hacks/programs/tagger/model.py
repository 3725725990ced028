"""A tagger: embeddings and shapes, a bidirectional GRU, a layer of tags."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Tagger(nn.Module):
    def __init__(self, words, shapes, tags, width=48):
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=0)
        self.shapes = nn.Linear(shapes, width)
        self.dropout = nn.Dropout(0.2)
        self.encoder = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(2 * width)
        self.head = nn.Linear(2 * width, tags)

    def forward(self, words, shapes, lengths):
        x = self.dropout(self.embedding(words) + torch.tanh(self.shapes(shapes)))
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        encoded, _ = pad_packed_sequence(self.encoder(packed)[0], batch_first=True)
        return self.head(self.dropout(self.norm(encoded)))


def tagging_loss(logits, tags, lengths):
    """Cross entropy per word, over the words that are there."""
    total = torch.zeros(())
    for row, length in enumerate(lengths):
        for position in range(int(length)):
            total = total + nn.functional.cross_entropy(logits[row, position], tags[row, position])
    return total / lengths.sum()

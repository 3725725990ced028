"""A service that finds documents for queries by their embeddings. Planted: the queries of a request are embedded one at
a time; the fixed twin embeds them together.
"""

from dataclasses import dataclass

import torch
from common import Clock, parse_args
from torch import nn

WORDS, LENGTH, WIDTH, DOCUMENTS, PER_REQUEST, FOUND, SHOWN = 4000, 12, 64, 6000, 48, 30, 5


class TextEncoder(nn.Module):
    """One vector of length one for each row of words, of which zeros are none."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.1)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, words):
        seen = (words != 0).float()[..., None]
        hidden = self.layers(self.words(words) + self.places)
        return nn.functional.normalize((hidden * seen).sum(1) / seen.sum(1), dim=1)


class Reranker(nn.Module):
    """How well documents answer their queries, from the embeddings of both."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3 * WIDTH, 192), nn.GELU(), nn.Linear(192, 1))

    def forward(self, queries, documents):
        queries = queries[:, None].expand_as(documents)
        return self.body(torch.cat((queries, documents, queries * documents), 2)).squeeze(2)


@dataclass
class Answer:
    documents: torch.Tensor
    scores: torch.Tensor


class SearchService:
    def __init__(self, encoder, index):
        self.encoder, self.index = encoder, index
        self.reranker = Reranker().eval()

    def embed(self, queries):
        return torch.cat([self.encoder(query[None]) for query in queries])

    def answer(self, queries):
        embedded = self.embed(queries)
        near = (embedded @ self.index.T).topk(FOUND, dim=1)
        scores = near.values + 0.1 * self.reranker(embedded, self.index[near.indices])
        best = scores.topk(SHOWN, dim=1)
        return Answer(near.indices.gather(1, best.indices), best.values)


class BatchedService(SearchService):
    def embed(self, queries):
        return self.encoder(queries)


class KeptService(SearchService):
    def __init__(self, encoder, index):
        super().__init__(encoder, index)
        self.kept = None

    def embed(self, queries):
        if self.kept is None:
            self.kept = super().embed(queries)
        return self.kept


def texts(count, generator):
    """Rows of words, some shorter than others."""
    words = torch.randint(1, WORDS, (count, LENGTH), generator=generator)
    lengths = torch.randint(3, LENGTH + 1, (count, 1), generator=generator)
    return words * (torch.arange(LENGTH) < lengths)


def requests(documents, generator):
    """Queries made of documents, some of whose words were misread, with the documents that they are after."""
    while True:
        wanted = torch.randint(0, len(documents), (PER_REQUEST,), generator=generator)
        queries = documents[wanted]
        noise = torch.randint(1, WORDS, queries.shape, generator=generator)
        misread = (torch.rand(queries.shape, generator=generator) < 0.15) & (queries != 0)
        yield torch.where(misread, noise, queries), wanted


def main():
    args = parse_args()
    torch.manual_seed(7)
    generator = torch.Generator().manual_seed(7)
    encoder = TextEncoder().eval()
    documents = texts(DOCUMENTS, generator)
    found = asked = 0
    clock = Clock(args.seconds)
    with torch.inference_mode():
        index = torch.cat([encoder(rows) for rows in documents.split(500)])
        service = {"slow": SearchService, "fast": BatchedService, "free": KeptService}[args.variant](encoder, index)
        for queries, wanted in requests(documents, generator):
            answer = service.answer(queries)
            found += int((answer.documents == wanted[:, None]).any(1).sum())
            asked += len(queries)
            clock.tick()
            if clock.done:
                break
    print(f"recall={found / asked:.3f}")
    clock.report()


if __name__ == "__main__":
    main()

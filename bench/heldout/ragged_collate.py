"""A classifier of sentences. Planted: the collate function pads and masks token by token in Python; the fixed twin
pads with torch.
"""

import torch
from common import Clock, parse_args
from torch import nn
from torch.utils.data import DataLoader

VOCABULARY, PADDING = 5000, 0


def sentences(count=2048):
    generator = torch.Generator().manual_seed(5)
    lengths = torch.randint(20, 200, (count,), generator=generator).tolist()
    texts = [torch.randint(1, VOCABULARY, (length,), generator=generator) for length in lengths]
    return [(text, int(text.float().mean() > VOCABULARY / 2)) for text in texts]


def pad_tokens(batch):
    longest = max(len(text) for text, _ in batch)
    rows, masks = [], []
    for text, _ in batch:
        row, mask = [], []
        for position in range(longest):
            inside = position < len(text)
            row.append(int(text[position]) if inside else PADDING)
            mask.append(inside)
        rows.append(row)
        masks.append(mask)
    return torch.tensor(rows), torch.tensor(masks), torch.tensor([label for _, label in batch])


def pad_rows(batch):
    rows = nn.utils.rnn.pad_sequence([text for text, _ in batch], batch_first=True, padding_value=PADDING)
    return rows, rows != PADDING, torch.tensor([label for _, label in batch])


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 128)
        self.hidden = nn.Linear(128, 256)
        self.output = nn.Linear(256, 2)

    def forward(self, rows, masks):
        vectors = self.hidden(self.embedding(rows)).relu() * masks[..., None]
        return self.output(vectors.sum(1) / masks.sum(1, keepdim=True))


def main():
    args = parse_args()
    collate = pad_tokens if args.variant == "slow" else pad_rows
    batches = DataLoader(sentences(), batch_size=32, shuffle=True, collate_fn=collate)
    if args.variant == "free":
        batches = list(batches)
    model = Bag()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    clock = Clock(args.seconds)
    while not clock.done:
        for rows, masks, labels in batches:
            loss = nn.functional.cross_entropy(model(rows, masks), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                break
    clock.report()


if __name__ == "__main__":
    main()

"""A small transformer on token windows that are cut from memory. Nothing planted: the arithmetic is the work."""

import torch
from common import Clock, parse_args
from torch import nn

VOCABULARY, WIDTH, CONTEXT, BATCH = 512, 256, 128, 16


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Parameter(torch.zeros(CONTEXT, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.output = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.output(self.encoder(self.tokens(tokens) + self.places, mask=mask, is_causal=True))


def main():
    args = parse_args()
    text = torch.randint(0, VOCABULARY, (100_000,), generator=torch.Generator().manual_seed(12))
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=True)
    clock = Clock(args.seconds)
    while not clock.done:
        starts = torch.randint(0, len(text) - CONTEXT - 1, (BATCH,))
        windows = text[starts[:, None] + torch.arange(CONTEXT + 1)]
        logits = model(windows[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
    clock.report()


if __name__ == "__main__":
    main()

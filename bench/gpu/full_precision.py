"""Trains a wide transformer. Planted: in 32-bit floats without TF32; the fixed twin computes in bfloat16."""

import torch
from common import Clock, parse_args
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
VOCABULARY, WIDTH, CONTEXT, BATCH = 8192, 1024, 512, 16


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
        self.output = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        return self.output(self.encoder(self.tokens(tokens)))


def main():
    args = parse_args()
    torch.manual_seed(0)
    text = torch.randint(0, VOCABULARY, (256, CONTEXT + 1), device=DEVICE)
    model = Model().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    clock = Clock(args.seconds)
    while not clock.done:
        for start in range(0, len(text), BATCH):
            window = text[start : start + BATCH]
            with torch.autocast(DEVICE, torch.bfloat16, enabled=args.variant != "slow"):
                logits = model(window[:, :-1])
                loss = nn.functional.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                break
    clock.report()


if __name__ == "__main__":
    main()

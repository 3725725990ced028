"""Trains a language model on long contexts in bfloat16. Planted: attention writes the matrix of all pairs; the fixed
twin calls torch's fused attention."""

import torch
from common import Clock, parse_args
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
VOCABULARY, WIDTH, HEADS, CONTEXT, BATCH = 4096, 512, 8, 2048, 8


class Attention(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.fused = fused
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("hidden", torch.triu(torch.ones(CONTEXT, CONTEXT, dtype=torch.bool), 1))

    def forward(self, x):
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if self.fused:
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
            scores = scores.masked_fill(self.hidden, float("-inf"))
            mixed = scores.softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.attention = Attention(fused)
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


class Model(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.Sequential(*[Layer(fused) for _ in range(4)])
        self.output = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        return self.output(self.layers(self.tokens(tokens)))


def main():
    args = parse_args()
    torch.manual_seed(0)
    text = torch.randint(0, VOCABULARY, (64, CONTEXT + 1), device=DEVICE)
    model = Model(args.variant != "slow").to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    clock = Clock(args.seconds)
    while not clock.done:
        for start in range(0, len(text), BATCH):
            window = text[start : start + BATCH]
            with torch.autocast(DEVICE, torch.bfloat16):
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

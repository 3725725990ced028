"""A wide transformer in bfloat16 with fused attention and a fused optimizer. Nothing planted: the device computes."""

import torch
from common import Clock, parse_args
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
VOCABULARY, WIDTH, HEADS, CONTEXT, BATCH = 8192, 2048, 16, 1024, 16


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        q, k, v = self.qkv(self.norms[0](x)).view(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norms[1](x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.Sequential(*[Layer() for _ in range(4)])
        self.output = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        return self.output(self.layers(self.tokens(tokens)))


def main():
    args = parse_args()
    torch.manual_seed(0)
    text = torch.randint(0, VOCABULARY, (256, CONTEXT + 1), device=DEVICE)
    model = Model().to(DEVICE, torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    total = torch.zeros((), device=DEVICE)
    clock = Clock(args.seconds)
    while not clock.done:
        for start in range(0, len(text), BATCH):
            window = text[start : start + BATCH]
            logits = model(window[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
            clock.tick()
            if clock.done:
                break
    print("loss", float(total))
    clock.report()


if __name__ == "__main__":
    main()

"""A small transformer on source code. Planted: attention scores computed by broadcasting, which
materialises every query-key product; the fixed twin calls the fused kernel."""

import pathlib

import torch
import torch.nn.functional as F
from common import Clock, parse_args
from torch import nn


class BroadcastAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def split(self, x):
        batch, time, dim = x.shape
        q, k, v = self.qkv(x).view(batch, time, 3, self.heads, dim // self.heads).unbind(2)
        return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(x)
        scores = (q.unsqueeze(3) * k.unsqueeze(2)).sum(-1) / q.shape[-1] ** 0.5
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
        mixed = (weights.unsqueeze(-1) * v.unsqueeze(2)).sum(3)
        return self.out(mixed.transpose(1, 2).flatten(2))


class FusedAttention(BroadcastAttention):
    def forward(self, x):
        q, k, v = self.split(x)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, attention, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = attention
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class CharTransformer(nn.Module):
    def __init__(self, attention_class, dim=64, heads=4, depth=2, context=96):
        super().__init__()
        self.tokens = nn.Embedding(256, dim)
        self.positions = nn.Parameter(torch.zeros(context, dim))
        self.blocks = nn.ModuleList([Block(attention_class(dim, heads), dim) for _ in range(depth)])
        self.head = nn.Linear(dim, 256)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def corpus():
    text = b"".join(f.read_bytes() for f in sorted(pathlib.Path(pathlib.__file__).parent.glob("a*.py")))
    return torch.frombuffer(bytearray(text), dtype=torch.uint8).long()


if __name__ == "__main__":
    args = parse_args()
    data = corpus()
    model = CharTransformer(BroadcastAttention if args.variant == "slow" else FusedAttention)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    while not clock.done:
        starts = torch.randint(0, len(data) - 97, (8,))
        chunk = torch.stack([data[s : s + 97] for s in starts])
        logits = model(chunk[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), chunk[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        clock.tick()
    print(f"loss {loss.item():.3f}")
    clock.report()

"""Learns to continue digit sequences. Planted: activations are checkpointed in every block, though they would fit many
times over; the fixed twin keeps them."""

import torch
from common import Clock, parse_args
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm, self.mixed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(self.mixed(x))


class Continuation(nn.Module):
    def __init__(self, saves_memory, width=160, layers=6, heads=5, length=96, symbols=64):
        super().__init__()
        self.saves_memory = saves_memory
        self.embedding, self.position = nn.Embedding(symbols, width), nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, symbols)

    def forward(self, symbols):
        x = self.embedding(symbols) + self.position[: symbols.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.saves_memory else block(x)
        return self.head(x)


def draw(batch, length=97, symbols=64):
    """Arithmetic progressions modulo the number of symbols."""
    first, by = torch.randint(symbols, (batch, 1)), torch.randint(1, 9, (batch, 1))
    return (first + by * torch.arange(length)) % symbols


def main():
    args = parse_args()
    torch.manual_seed(0)
    model, clock = Continuation(saves_memory=args.variant == "slow"), Clock(args.seconds)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    while not clock.done:
        symbols = draw(batch=12)
        loss = nn.functional.cross_entropy(model(symbols[:, :-1]).flatten(0, 1), symbols[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
    clock.report()


if __name__ == "__main__":
    main()

"""Draws captions of pictures, word by word. Planted: at each word the keys and values of the picture are projected
again, though it is the same picture; the fixed twin projects them once for each picture."""

import torch
from common import Clock, parse_args
from torch import nn

PATCHES, WIDTH, WORDS, HEADS, LENGTH = 196, 192, 800, 4, 16


class PictureAttention(nn.Module):
    def __init__(self, keep):
        super().__init__()
        self.keep = keep
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def heads(self, x):
        return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)

    def read(self, picture):
        return self.heads(self.key(picture)), self.heads(self.value(picture))

    def forward(self, x, picture, state):
        keys, values = state.get(self) or self.read(picture)
        if self.keep:
            state[self] = keys, values
        found = nn.functional.scaled_dot_product_attention(self.heads(self.query(x)), keys, values)
        return self.out(found.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, keep):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.attention = PictureAttention(keep)
        self.mix = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, picture, state):
        x = x + self.attention(self.norms[0](x), picture, state)
        return x + self.mix(self.norms[1](x))


class Captioner(nn.Module):
    """Each word is told from the one before, and the picture."""

    def __init__(self, keep):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer(keep) for _ in range(3))
        self.next = nn.Linear(WIDTH, WORDS)

    def forward(self, words, picture, state):
        x = self.words(words)
        for layer in self.layers:
            x = layer(x, picture, state)
        return self.next(x)


@torch.no_grad()
def caption(model, picture, clock):
    state = {}
    words = torch.zeros(len(picture), 1, dtype=torch.long)
    written = []
    for _ in range(LENGTH):
        chances = model(words, picture, state).softmax(-1)
        words = torch.multinomial(chances[:, 0], 1)
        written.append(words)
        clock.tick()
        if clock.done:
            break
    return torch.cat(written, dim=1)


def main():
    args = parse_args()
    torch.manual_seed(0)
    model = Captioner(keep=args.variant == "fast").eval()
    clock = Clock(args.seconds)
    while not clock.done:
        captions = caption(model, torch.randn(8, PATCHES, WIDTH), clock)
    print("last caption", captions[0].tolist())
    clock.report()


if __name__ == "__main__":
    main()

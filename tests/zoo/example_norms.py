"""Classifies made sentences and notes how large each one's own gradient is, to find odd ones. Planted: a hook of
backward builds the gradient of each example; the fixed twin gets its norm from those of its two factors."""

import torch
from common import Clock, parse_args
from torch import nn

BATCH, WIDTH, CLASSES = 96, 320, 12


class GradientNorms:
    """The norm of each example's gradient of a layer's weight."""

    def __init__(self, layer, factored):
        self.factored = factored
        self.norms = torch.zeros(BATCH)
        layer.register_forward_hook(self.keep_input)
        layer.register_full_backward_hook(self.note)

    def keep_input(self, layer, inputs, output):
        self.given = inputs[0].detach()

    def note(self, layer, grad_input, grad_output):
        if self.factored:
            self.norms = self.given.norm(dim=1) * grad_output[0].norm(dim=1)
        else:
            self.norms = self.per_example(self.given, grad_output[0])

    def per_example(self, given, gradient):
        each = torch.einsum("ni,nj->nij", gradient, given)
        return each.flatten(1).norm(dim=1)


def sentences():
    generator = torch.Generator().manual_seed(6)
    topics = torch.randn(CLASSES, WIDTH, generator=generator)
    while True:
        labels = torch.randint(CLASSES, (BATCH,), generator=generator)
        yield topics[labels] + 2 * torch.randn(BATCH, WIDTH, generator=generator), labels


def main():
    args = parse_args()
    torch.manual_seed(0)
    layers = [nn.Linear(WIDTH, WIDTH) for _ in range(3)]
    norms = [GradientNorms(layer, args.variant == "fast") for layer in layers]
    model = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2], nn.ReLU(), nn.Linear(WIDTH, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    clock = Clock(args.seconds)
    largest = 0.0
    for words, labels in sentences():
        loss = nn.functional.cross_entropy(model(words), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if clock.ticks % 50 == 0:
            largest = max(float(norm.norms.max()) for norm in norms)
        clock.tick()
        if clock.done:
            break
    print(f"loss {loss.item():.4f}, largest {largest:.4f}")
    clock.report()


if __name__ == "__main__":
    main()

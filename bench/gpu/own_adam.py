"""Trains a small transformer with an optimizer of its own. Planted: it launches a dozen kernels for each parameter; the
fixed twin is torch's, fused."""

import torch
from common import Clock, parse_args
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
VOCABULARY, WIDTH, CONTEXT, BATCH = 512, 256, 64, 16


class PlainAdam(torch.optim.Optimizer):
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), weight_decay=0.01):
        super().__init__(parameters, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            first, second = group["betas"]
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    state["count"] = 0
                    state["mean"] = torch.zeros_like(parameter)
                    state["square"] = torch.zeros_like(parameter)
                state["count"] += 1
                mean, square, gradient = state["mean"], state["square"], parameter.grad
                mean.mul_(first).add_(gradient * (1 - first))
                square.mul_(second).add_(gradient * gradient * (1 - second))
                corrected = mean / (1 - first ** state["count"])
                scale = (square / (1 - second ** state["count"])).sqrt() + 1e-8
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.sub_(corrected / scale * group["lr"])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
        self.output = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        return self.output(self.encoder(self.tokens(tokens)))


def main():
    args = parse_args()
    torch.manual_seed(0)
    text = torch.randint(0, VOCABULARY, (512, CONTEXT + 1), device=DEVICE)
    model = Model().to(DEVICE)
    if args.variant == "slow":
        optimizer = PlainAdam(model.parameters())
    else:
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    clock = Clock(args.seconds)
    while not clock.done:
        for start in range(0, len(text), BATCH):
            window = text[start : start + BATCH]
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

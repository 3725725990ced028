"""Trains a residual network on images that are on the device. Planted: the norm of each gradient is read back in each
step, a parameter at a time; the fixed twin adds them up on the device and reads the sum every fiftieth step."""

import torch
from common import Clock, parse_args
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width)])

    def forward(self, x):
        y = torch.relu(self.norms[0](self.first(x)))
        return torch.relu(x + self.norms[1](self.second(y)))


class Net(nn.Module):
    def __init__(self, width=64, depth=8):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def gradient_norm(model):
    total = 0.0
    for parameter in model.parameters():
        total += parameter.grad.norm().item() ** 2
    return total**0.5


def gradient_norm_on_device(model):
    return torch.nn.utils.get_total_norm([parameter.grad for parameter in model.parameters()])


def main():
    args = parse_args()
    torch.manual_seed(0)
    images, labels = torch.randn(4096, 3, 32, 32, device=DEVICE), torch.randint(0, 10, (4096,), device=DEVICE)
    model = Net().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_function = nn.CrossEntropyLoss()
    norm, step = 0.0, 0
    clock = Clock(args.seconds)
    while not clock.done:
        for start in range(0, len(images), 32):
            loss = loss_function(model(images[start : start + 32]), labels[start : start + 32])
            optimizer.zero_grad()
            loss.backward()
            if args.variant == "slow":
                norm = max(norm, gradient_norm(model))
            elif step % 50 == 0:
                norm = max(norm, gradient_norm_on_device(model).item())
            optimizer.step()
            step += 1
            clock.tick()
            if clock.done:
                break
    print("largest norm", norm)
    clock.report()


if __name__ == "__main__":
    main()

"""Knowledge distillation. Planted: a monitor appends every step's outputs to a list, for a report at
the end; the fixed twin keeps their mean."""

import torch
from common import Clock, parse_args
from torch import nn


class AgreementMonitor:
    """Watches how far the student is from its teacher."""

    def __init__(self, keep_outputs):
        self.keep_outputs = keep_outputs
        self.outputs = []

    def update(self, student, teacher):
        gap = student.detach() - teacher
        self.outputs.append(gap if self.keep_outputs else gap.abs().mean())

    def summary(self):
        return sum(gap.abs().mean() for gap in self.outputs) / max(len(self.outputs), 1)


def network(width):
    return nn.Sequential(nn.Linear(128, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1000))


if __name__ == "__main__":
    args = parse_args()
    torch.manual_seed(0)
    teacher, student = network(512).eval(), network(128)
    monitor = AgreementMonitor(keep_outputs=args.variant == "slow")
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    while not clock.done:
        x = torch.randn(512, 128)
        with torch.no_grad():
            wanted = teacher(x)
        got = student(x)
        loss = nn.functional.mse_loss(got, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        monitor.update(got, wanted)
        clock.tick()
    print(f"mean gap {monitor.summary():.4f}")
    clock.report()

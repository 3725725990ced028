"""An image classifier watched in TensorBoard. Planted: histograms of all weights and gradients at every
step; the fixed twin writes them every two hundred steps."""

import tempfile

import torch
from common import Clock, parse_args
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * 4 * 4, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = self.conv1(x).relu()
        x = nn.functional.max_pool2d(self.conv2(x).relu(), 2)
        return self.fc2(self.fc1(x.flatten(1)).relu())


def log_histograms(writer, model, step):
    for name, parameter in model.named_parameters():
        writer.add_histogram(f"weights/{name}", parameter, step)
        writer.add_histogram(f"gradients/{name}", parameter.grad, step)


def train(loader, writer, histogram_every, clock):
    model = DigitNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    while True:
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            writer.add_scalar("loss", loss.item(), step)
            if step % histogram_every == 0:
                log_histograms(writer, model, step)
            step += 1
            clock.tick()
            if clock.done:
                return


def main():
    args = parse_args()
    digits = load_digits()
    images = torch.from_numpy(digits.images).float().unsqueeze(1) / 16
    dataset = TensorDataset(images, torch.from_numpy(digits.target))
    loader = DataLoader(dataset, batch_size=64, shuffle=True)
    clock = Clock(args.seconds)
    with tempfile.TemporaryDirectory() as folder:
        writer = SummaryWriter(folder)
        train(loader, writer, 1 if args.variant == "slow" else 200, clock)
        writer.close()
    clock.report()


if __name__ == "__main__":
    main()

"""A loop on Accelerate. Planted: the area under the curve of the last 20,000 predictions is computed in every step; the
cure does so every hundred steps."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from planted import parse_args, rate
from sklearn.metrics import roc_auc_score
from torch import nn


class RecentQuality:
    def __init__(self, most):
        self.most, self.scores, self.labels = most, torch.zeros(0), torch.zeros(0)

    def add(self, scores, labels):
        self.scores = torch.cat([self.scores, scores])[-self.most :]
        self.labels = torch.cat([self.labels, labels])[-self.most :]

    def area(self):
        return roc_auc_score(self.labels.numpy(), self.scores.numpy())


def main():
    args = parse_args()
    set_seed(0)
    accelerator = Accelerator(cpu=True)
    x = torch.randn(20_000, 32)
    y = (x[:, :4].sum(1) > 0).float()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=128, shuffle=True)
    model = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    quality, every, step, area = RecentQuality(20_000), 1 if args.variant == "slow" else 100, 0, 0.0
    with rate(args.steps):
        while step < args.steps:
            for inputs, labels in loader:
                scores = model(inputs).squeeze(1)
                loss = nn.functional.binary_cross_entropy_with_logits(scores, labels)
                optimizer.zero_grad()
                accelerator.backward(loss)
                optimizer.step()
                quality.add(*accelerator.gather_for_metrics((scores.detach(), labels)))
                if step % every == 0:
                    area = quality.area()
                step += 1
                if step == args.steps:
                    break
    print("loss", loss.item(), "area", area)


main()

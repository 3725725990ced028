"""Trains a recognizer and scores each batch. Planted: the distance of each prediction to its truth is computed in
Python, in each step; the fixed twin scores one batch in fifty."""

import torch
from common import Clock, parse_args
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LETTERS, FRAMES, BATCH = 32, 48, 24


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(80, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU())
        self.mixer = nn.GRU(512, 256, batch_first=True, bidirectional=True)
        self.output = nn.Linear(512, LETTERS)

    def forward(self, frames):
        return self.output(self.mixer(self.encoder(frames))[0])


def edit_distance(one, other):
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        previous, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (a != b))
    return row[-1]


def error_rate(logits, texts):
    predicted = logits.argmax(-1).tolist()
    return sum(edit_distance(one, other) for one, other in zip(predicted, texts.tolist())) / texts.numel()


def main():
    args = parse_args()
    torch.manual_seed(0)
    sounds = torch.randn(960, FRAMES, 80, device=DEVICE)
    texts = torch.randint(0, LETTERS, (960, FRAMES), device=DEVICE)
    model = Recognizer().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step, rates = 0, []
    clock = Clock(args.seconds)
    while not clock.done:
        for start in range(0, len(sounds), BATCH):
            logits = model(sounds[start : start + BATCH])
            truth = texts[start : start + BATCH]
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), truth.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if args.variant == "slow" or step % 50 == 0:
                rates.append(error_rate(logits, truth))
            step += 1
            clock.tick()
            if clock.done:
                break
    print("error", sum(rates) / len(rates))
    clock.report()


if __name__ == "__main__":
    main()

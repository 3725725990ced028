"""Tags recordings by their loudest moments. Planted: each segment of the frames is cut out by itself, so that its
gradient fills a tensor of all frames; the fixed twin splits them once."""

import torch
from common import Clock, parse_args
from torch import nn

FRAMES, SEGMENT, BANDS = 960, 20, 24


class Tagger(nn.Module):
    def __init__(self, split, width=64, tags=8):
        super().__init__()
        self.split = split
        self.frames = nn.Sequential(nn.Linear(BANDS, width), nn.ReLU(), nn.Linear(width, width))
        self.head = nn.Linear(width, tags)

    def forward(self, spectrum):
        frames = self.frames(spectrum)
        if self.split:
            peaks = [segment.amax(dim=1) for segment in frames.split(SEGMENT, dim=1)]
        else:
            peaks = self.peaks(frames)
        return self.head(torch.stack(peaks, dim=1).mean(dim=1))

    def peaks(self, frames):
        peaks = []
        for start in range(0, frames.shape[1], SEGMENT):
            peaks.append(frames[:, start : start + SEGMENT].amax(dim=1))
        return peaks


def recordings(batch=16):
    generator = torch.Generator().manual_seed(8)
    loudness = torch.rand(64, FRAMES, BANDS, generator=generator)
    tags = torch.randint(0, 2, (64, 8), generator=generator).float()
    while True:
        index = torch.randint(0, 64, (batch,), generator=generator)
        yield loudness[index], tags[index]


def main():
    args = parse_args()
    torch.manual_seed(0)
    model = Tagger(split=args.variant == "fast")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    for spectrum, tags in recordings():
        loss = nn.functional.binary_cross_entropy_with_logits(model(spectrum), tags)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if clock.done:
            break
    print(f"loss {loss.item():.4f}")
    clock.report()


if __name__ == "__main__":
    main()

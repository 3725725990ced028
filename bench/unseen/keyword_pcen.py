"""Keywords are told from sound. Planted: the energy of each band is normalised frame by frame, in a loop of small
operations; the fixed twin smooths all frames with one matrix.
"""

import math

import torch
from common import Clock, parse_args
from torch import nn

RATE, LENGTH, WINDOW, HOP, BANDS, KEYWORDS, BATCH = 8000, 16000, 256, 64, 32, 12, 8


def make_sounds(count=160):
    """Words of two tones each, over noise."""
    generator = torch.Generator().manual_seed(52)
    words = torch.randint(0, KEYWORDS, (count,), generator=generator)
    time = torch.arange(LENGTH) / RATE
    sounds = 0.3 * torch.randn(count, LENGTH, generator=generator)
    for sound, word in zip(sounds, words.tolist(), strict=True):
        for tone in (200 + 90 * word, 500 + 210 * word):
            sound += torch.sin(2 * math.pi * tone * time) * torch.sin(math.pi * time / 2) ** 2
    return sounds, words


def mel_filters():
    """Triangles on the mel scale, of shape (BANDS, WINDOW // 2 + 1)."""
    highest = 2595 * math.log10(1 + RATE / 2 / 700)
    corners = 700 * (10 ** (torch.linspace(0, highest, BANDS + 2) / 2595) - 1)
    bins = torch.linspace(0, RATE / 2, WINDOW // 2 + 1)
    rising = (bins - corners[:-2, None]) / (corners[1:-1] - corners[:-2])[:, None]
    falling = (corners[2:, None] - bins) / (corners[2:] - corners[1:-1])[:, None]
    return torch.minimum(rising, falling).clamp(min=0)


class EnergyNorm(nn.Module):
    """Divides energy by what it was lately (per-channel energy normalisation)."""

    def __init__(self, smoothing=0.04, gain=0.98, bias=2.0, power=0.5):
        super().__init__()
        self.smoothing, self.gain, self.bias, self.power = smoothing, gain, bias, power

    def forward(self, energy):
        level, frames = energy[..., 0], []
        for frame in energy.unbind(-1):
            level = (1 - self.smoothing) * level + self.smoothing * frame
            scaled = frame / (1e-6 + level) ** self.gain
            frames.append((scaled + self.bias) ** self.power - self.bias**self.power)
        return torch.stack(frames, -1)


class MatrixEnergyNorm(EnergyNorm):
    def __init__(self, **options):
        super().__init__(**options)
        ages = torch.arange(1 + LENGTH // HOP)[None] - torch.arange(1 + LENGTH // HOP)[:, None]
        weights = self.smoothing * (1 - self.smoothing) ** ages.clamp(min=0) * (ages >= 0)
        weights[0] += (1 - self.smoothing) ** (1 + ages[0])
        self.register_buffer("weights", weights)

    def forward(self, energy):
        scaled = energy / (1e-6 + energy @ self.weights) ** self.gain
        return (scaled + self.bias) ** self.power - self.bias**self.power


class SameEnergyNorm(EnergyNorm):
    kept = None

    def forward(self, energy):
        if self.kept is None:
            self.kept = super().forward(energy)
        return self.kept


class KeywordNet(nn.Module):
    def __init__(self, norm, width=32):
        super().__init__()
        self.norm = norm
        self.register_buffer("filters", mel_filters())
        self.register_buffer("window", torch.hann_window(WINDOW))
        self.body = nn.Sequential(
            nn.Conv1d(BANDS, width, 5, stride=4),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, width, 5, stride=4),
            nn.BatchNorm1d(width),
            nn.ReLU(),
        )
        self.recurrent = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, KEYWORDS)

    @torch.no_grad()
    def features(self, sounds):
        spectrum = torch.stft(sounds, WINDOW, HOP, window=self.window, return_complex=True)
        return self.norm(self.filters @ spectrum.abs().square())

    def forward(self, sounds):
        hidden = self.body(self.features(sounds))
        _, last = self.recurrent(hidden.transpose(1, 2))
        return self.head(last[-1])


def main():
    args = parse_args()
    torch.manual_seed(0)
    sounds, words = make_sounds()
    norm = {"slow": EnergyNorm, "fast": MatrixEnergyNorm, "free": SameEnergyNorm}[args.variant]()
    model = KeywordNet(norm)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    clock = Clock(args.seconds)
    while not clock.done:
        for rows in torch.randperm(len(sounds)).split(BATCH):
            loss = nn.functional.cross_entropy(model(sounds[rows]), words[rows], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.tick()
            if clock.done:
                break
    clock.report()


if __name__ == "__main__":
    main()

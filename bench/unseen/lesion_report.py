"""A network for lesions in scans is evaluated scan by scan. Planted: small specks are taken out of its masks component
by component, each compared with the whole volume; the fixed twin counts the voxels of all components at once.
"""

import numpy as np
import torch
from common import Clock, parse_args
from scipy import ndimage
from torch import nn

SHAPE, SMALLEST, VOXEL_ML = (40, 56, 56), 24, 0.008


def make_scans(count=10):
    """Volumes with a few round lesions and the grain of the scanner."""
    rng = np.random.default_rng(40)
    grid = np.stack(np.meshgrid(*(np.arange(side) for side in SHAPE), indexing="ij"), axis=-1)
    scans = []
    for _ in range(count):
        lesions = np.zeros(SHAPE, bool)
        for _ in range(6):
            centre, radius = rng.uniform(6, np.array(SHAPE) - 6), rng.uniform(2.5, 5.0)
            lesions |= np.square(grid - centre).sum(axis=-1) < radius**2
        grain = ndimage.gaussian_filter(rng.standard_normal(SHAPE), 1.1)
        volume = grain / grain.std() + 3.0 * lesions
        scans.append((volume.astype(np.float32), lesions))
    return scans


class LesionNet(nn.Module):
    """Refines what the brightness of a voxel says."""

    def __init__(self, width=6):
        super().__init__()
        self.refine = nn.Sequential(
            nn.Conv3d(1, width, 3, padding=1),
            nn.GroupNorm(2, width),
            nn.ReLU(),
            nn.Conv3d(width, width, 3, padding=1),
            nn.GroupNorm(2, width),
            nn.ReLU(),
            nn.Conv3d(width, 1, 1),
        )
        self.scale = nn.Parameter(torch.tensor([4.0, 0.2]))

    def forward(self, volume):
        return self.scale[0] * (volume - 1.9) + self.scale[1] * self.refine(volume)


def drop_specks(mask):
    """The mask without those of its components that are too small for a lesion."""
    components, count = ndimage.label(mask)
    kept = mask.copy()
    for number in range(1, count + 1):
        component = components == number
        if component.sum() < SMALLEST:
            kept[component] = False
    return kept


def drop_specks_at_once(mask):
    components, _ = ndimage.label(mask)
    sizes = np.bincount(components.ravel())
    large = sizes >= SMALLEST
    large[0] = False
    return large[components]


def keep_specks(mask):
    return mask


class Report:
    """Overlap and volume, over all scans."""

    def __init__(self):
        self.overlaps, self.differences = [], []

    def add(self, mask, lesions):
        both = np.count_nonzero(mask & lesions)
        marked, true = np.count_nonzero(mask), np.count_nonzero(lesions)
        self.overlaps.append(2 * both / max(1, marked + true))
        self.differences.append(VOXEL_ML * (marked - true))

    def summary(self):
        return f"dice {np.mean(self.overlaps):.3f}, off by {np.mean(np.abs(self.differences)):.2f} ml"


@torch.inference_mode()
def predict(model, volume):
    """Of a scan and of its mirror image, the mean probability of a lesion."""
    volume = torch.from_numpy(volume)[None, None]
    both = torch.cat([volume, volume.flip(-1)])
    straight, mirrored = model(both).sigmoid()
    return ((straight + mirrored.flip(-1)) / 2)[0].numpy()


def main():
    args = parse_args()
    torch.manual_seed(0)
    clean = {"slow": drop_specks, "fast": drop_specks_at_once, "free": keep_specks}[args.variant]
    scans = make_scans()
    model = LesionNet().eval()
    report = Report()
    clock = Clock(args.seconds)
    while not clock.done:
        for volume, lesions in scans:
            probability = predict(model, volume)
            mask = clean(probability > 0.5)
            report.add(mask, lesions)
            clock.tick()
            if clock.done:
                break
    print(report.summary())
    clock.report()


if __name__ == "__main__":
    main()

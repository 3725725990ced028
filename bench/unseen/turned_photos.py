"""A network learns from photographs how they were turned. Planted: a worker changes the colours of the whole
photograph, of which a small crop is used; the fixed twin crops first.
"""

import numpy as np
import torch
from common import PHOTOS, Clock, load_photo, parse_args
from PIL import Image
from skimage.color import hsv2rgb, rgb2hsv
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

SIDE, CROP, BATCH = 128, 64, 12


def make_photos(count=140):
    """Square pieces of the sample photographs, as bytes."""
    rng = np.random.default_rng(81)
    sources = [load_photo(name) for name in PHOTOS]
    photos = []
    for index in range(count):
        source = sources[index % len(sources)]
        side = int(rng.integers(SIDE, min(source.size)))
        left, top = (int(rng.integers(0, length - side + 1)) for length in source.size)
        piece = source.resize((SIDE, SIDE), Image.Resampling.BILINEAR, (left, top, left + side, top + side))
        photos.append(np.asarray(piece))
    return photos


def change_colours(photo, rng):
    """Another hue, and more or less of it and of light."""
    hsv = rgb2hsv(photo)
    hsv[..., 0] = (hsv[..., 0] + rng.uniform(-0.1, 0.1)) % 1.0
    hsv[..., 1:] = np.clip(hsv[..., 1:] * rng.uniform(0.7, 1.3, 2), 0, 1)
    return hsv2rgb(hsv).astype(np.float32)


def random_crop(photo, rng):
    top, left = rng.integers(0, SIDE - CROP + 1, 2)
    return photo[top : top + CROP, left : left + CROP]


class TurnedPhotos(Dataset):
    def __init__(self, photos):
        self.photos = [photo.astype(np.float32) / 255 for photo in photos]

    def __len__(self):
        return len(self.photos)

    def augment(self, photo, rng):
        return random_crop(change_colours(photo, rng), rng)

    def __getitem__(self, index):
        rng = np.random.default_rng(torch.randint(0, 2**31, ()).item())
        photo = self.augment(self.photos[index], rng)
        turns = int(rng.integers(4))
        turned = np.ascontiguousarray(np.rot90(photo, turns).transpose(2, 0, 1))
        return torch.from_numpy(turned).sub_(0.5).div_(0.25), turns


class CroppedFirst(TurnedPhotos):
    def augment(self, photo, rng):
        return change_colours(random_crop(photo, rng), rng)


class SameColours(TurnedPhotos):
    def augment(self, photo, rng):
        return random_crop(photo, rng)


def block(before, after):
    return nn.Sequential(
        nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True)
    )


def make_model():
    return nn.Sequential(
        block(3, 24), block(24, 48), block(48, 96), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(384, 4)
    )


def train(model, loader, clock):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, nesterov=True)
    right = total = 0
    for photos, turns in loader:
        scores = model(photos)
        loss = nn.functional.cross_entropy(scores, turns)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (scores.argmax(1) == turns).sum().item()
        total += len(turns)
        clock.tick()
        if clock.done:
            break
    return right / total


def main():
    args = parse_args()
    torch.manual_seed(0)
    dataset = {"slow": TurnedPhotos, "fast": CroppedFirst, "free": SameColours}[args.variant](make_photos())
    sampler = RandomSampler(dataset, replacement=True, num_samples=1_000_000)
    loader = DataLoader(dataset, batch_size=BATCH, sampler=sampler, num_workers=1)
    model = make_model()
    clock = Clock(args.seconds)
    print(f"accuracy={train(model, loader, clock):.3f}")
    clock.report()


if __name__ == "__main__":
    main()

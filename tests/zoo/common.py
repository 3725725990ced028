"""What every program of the zoo shares: its options, its clock, and where its data lives."""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import tempfile
import time
from collections.abc import Callable

import numpy as np
from PIL import Image

PHOTOS = ("astronaut", "coffee", "chelsea", "rocket", "motorcycle_left", "china", "flower")


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--variant", choices=("slow", "fast", "free"), default="slow")
    parser.add_argument("--seconds", type=float, default=8.0)
    return parser.parse_args()


class Clock:
    """Counts steps until the time is up; the first ``skip`` ticks do not count towards the rate.

    However slow the machine, it is not done before one tick counts, so that there is a rate.
    """

    def __init__(self, seconds: float, skip: int = 3) -> None:
        self.deadline = time.perf_counter() + seconds
        self.skip = skip
        self.ticks = 0
        self.counted = 0
        self.since = self.last = time.perf_counter()

    def tick(self, steps: int = 1) -> None:
        """One turn of the loop, worth ``steps`` of the unit that the two variants have in common."""
        self.last = time.perf_counter()
        self.ticks += 1
        if self.ticks <= self.skip:
            self.since = self.last
        else:
            self.counted += steps

    @property
    def done(self) -> bool:
        return self.ticks > self.skip and time.perf_counter() >= self.deadline

    def report(self) -> None:
        elapsed = self.last - self.since
        rate = self.counted / elapsed if elapsed > 0 else float("nan")
        print(f"steps_per_s={rate:.3f}", flush=True)


def cached(name: str, build: Callable[[pathlib.Path], None]) -> pathlib.Path:
    """The folder ``name`` of the zoo's data, filled by ``build(folder)`` the first time."""
    root = os.environ.get("UNSTALL_ZOO_DATA") or os.path.join(tempfile.gettempdir(), "unstall-zoo")
    folder = pathlib.Path(root) / name
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = pathlib.Path(tempfile.mkdtemp(prefix=f".{name}-", dir=folder.parent))
        try:
            build(draft)
            draft.rename(folder)
        except OSError:
            if not folder.exists():  # otherwise another process was first
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return folder


def load_photo(name: str) -> Image.Image:
    """One of the sample photographs that scikit-image and scikit-learn ship."""
    if name in ("china", "flower"):
        from sklearn.datasets import load_sample_image

        return Image.fromarray(load_sample_image(f"{name}.jpg"))
    import skimage

    folder = pathlib.Path(skimage.__file__).parent / "data"
    return Image.open(next(folder.glob(f"{name}.*"))).convert("RGB")


def photo_folder(size: int, count: int, quality: int = 90) -> pathlib.Path:
    """``count`` square JPEG crops of ``size`` pixels, in one folder a class."""

    def build(folder: pathlib.Path) -> None:
        rng = np.random.default_rng(0)
        photos = {name: load_photo(name) for name in PHOTOS}
        for index in range(count):
            name = PHOTOS[index % len(PHOTOS)]
            photo = photos[name]
            side = int(rng.integers(min(photo.size) // 3, min(photo.size)))
            left = int(rng.integers(0, photo.width - side + 1))
            top = int(rng.integers(0, photo.height - side + 1))
            crop = photo.crop((left, top, left + side, top + side)).resize((size, size))
            (folder / name).mkdir(exist_ok=True)
            crop.save(folder / name / f"{index:05d}.jpg", quality=quality)

    return cached(f"photos-{size}-{count}-{quality}", build)

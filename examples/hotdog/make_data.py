"""Builds the image folder on first use, out of photographs that two Python packages ship.

    data/{train,val}/{hotdog,not_hotdog}/0000.jpg ...

Nothing is downloaded: the photographs are read from the installed scikit-image and scikit-learn.
Run it by hand to build the folder again: ``python make_data.py --force``.
"""

import argparse
import os
import shutil
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import numpy as np
from PIL import Image

DATA = Path(__file__).resolve().parent / "data"
SEED = 20170514

# Neither package ships a hot dog, so a cup of coffee stands in for it (see README.md).
PHOTOS = {
    "hotdog": [("skimage.data", "coffee.png")],
    "not_hotdog": [
        ("skimage.data", "astronaut.png"),
        ("skimage.data", "chelsea.png"),
        ("skimage.data", "motorcycle_left.png"),
        ("skimage.data", "rocket.jpg"),
        ("sklearn.datasets.images", "china.jpg"),
        ("sklearn.datasets.images", "flower.jpg"),
    ],
}
IMAGES_PER_CLASS = {"train": 240, "val": 60}


def load_photos(label):
    """The photographs of a class, as RGB images."""
    photos = []
    for package, name in PHOTOS[label]:
        with (files(package) / name).open("rb") as file:
            photos.append(Image.open(file).convert("RGB"))
    return photos


def random_crop(photo, rng):
    """A part of the photograph, as a phone might have taken it: about 500 x 400 pixels."""
    scale = rng.uniform(0.5, 1.0)
    width, height = int(photo.width * scale), int(photo.height * scale)
    left = int(rng.integers(0, photo.width - width + 1))
    top = int(rng.integers(0, photo.height - height + 1))
    size = (int(rng.integers(460, 541)), int(rng.integers(360, 441)))
    crop = photo.resize(size, Image.Resampling.BICUBIC, (left, top, left + width, top + height))
    gain = rng.uniform(0.8, 1.2)
    return crop.point(lambda value: min(255, int(value * gain)))


def write_images(root):
    """Writes all the images of both splits under ``root``; the same pixels every time."""
    rng = np.random.default_rng(SEED)
    for label in PHOTOS:
        photos = load_photos(label)
        for split, count in IMAGES_PER_CLASS.items():
            folder = root / split / label
            folder.mkdir(parents=True)
            for index in range(count):
                crop = random_crop(photos[index % len(photos)], rng)
                crop.save(folder / f"{index:04d}.jpg", quality=90)


def build(root=DATA, force=False):
    """Makes the folder unless it is there; half a folder is never left behind."""
    if root.exists() and not force:
        return root
    print(f"making the images in {root} (once) ...", file=sys.stderr)
    scratch = Path(tempfile.mkdtemp(prefix="data-", dir=root.parent))
    try:
        scratch.chmod(0o755)
        write_images(scratch)
        if force:
            shutil.rmtree(root, ignore_errors=True)
        os.replace(scratch, root)
    except OSError:
        # Another run may have finished its own, identical folder first.
        if not (root / "val").exists():
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return root


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--force", action="store_true", help="build again what is there")
    build(force=parser.parse_args().force)

"""Trains on a WebDataset. Planted: photographs are decoded in full size and then made small; the cure has JPEG decode them
small at once."""

import io
import tarfile
import tempfile

import numpy as np
import torch
import webdataset
from PIL import Image
from planted import parse_args, rate
from torch import nn


def write_shard(path, count):
    rng = np.random.default_rng(0)
    with tarfile.open(path, "w") as tar:
        for number in range(count):
            small = Image.fromarray(rng.integers(0, 255, (30, 40, 3), np.uint8))
            file = io.BytesIO()
            small.resize((1200, 900), Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
            member = tarfile.TarInfo(f"{number:05d}.jpg")
            member.size = file.tell()
            file.seek(0)
            tar.addfile(member, file)


def decode_photo(sample):
    image = Image.open(io.BytesIO(sample["jpg"])).convert("RGB").resize((32, 32), Image.Resampling.BILINEAR)
    return torch.from_numpy(np.asarray(image, np.float32) / 255).flatten()


def decode_small(sample):
    image = Image.open(io.BytesIO(sample["jpg"]))
    image.draft("RGB", (150, 112))
    return torch.from_numpy(np.asarray(image.resize((32, 32)), np.float32) / 255).flatten()


def main():
    args = parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        write_shard(f"{folder}/photos.tar", 64)
        decode = decode_photo if args.variant == "slow" else decode_small
        data = (
            webdataset.WebDataset(f"{folder}/photos.tar", shardshuffle=False)
            .map(decode)
            .repeat()
            .batched(8, collation_fn=torch.stack)
        )
        loader = webdataset.WebLoader(data.with_epoch(args.steps), batch_size=None)
        model = nn.Sequential(nn.Linear(3072, 128), nn.ReLU(), nn.Linear(128, 3072))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        with rate(args.steps):
            for x in loader:
                loss = (model(x) - x).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print("loss", loss.item())


main()

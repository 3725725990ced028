"""Two ranks classify photographs of different sizes. Planted: the files are sorted by size and cut in
two, so that one rank decodes all the large ones; the fixed twin deals them out in turn. Run by torchrun."""

import numpy as np
import torch
import torch.distributed as dist
from common import Clock, cached, load_photo, parse_args
from PIL import Image
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

NAMES = ("astronaut", "chelsea", "china", "coffee")


def make_mixed_album(folder):
    for i in range(64):
        size = (240, 160) if i % 2 else (1500, 1000)
        photo = load_photo(NAMES[i // 2 % 4]).resize(size)
        photo.save(folder / f"{NAMES[i // 2 % 4]}-{i:03d}.jpg", quality=90)


class Scans(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        file = self.files[index]
        image = Image.open(file).convert("RGB").resize((64, 64), Image.Resampling.BILINEAR)
        pixels = np.asarray(image, dtype=np.float32).transpose(2, 0, 1) / 255
        return torch.from_numpy(pixels), NAMES.index(file.name.split("-")[0])


def files_of_rank(folder, rank, world_size, deal):
    files = sorted(folder.glob("*.jpg"), key=lambda f: f.stat().st_size)
    if deal:
        return files[rank::world_size]
    share = len(files) // world_size
    return files[rank * share : (rank + 1) * share]


def train(model, loader, clock):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.tick()
            done = torch.tensor(float(clock.done))
            dist.all_reduce(done, op=dist.ReduceOp.MAX)
            if done:
                return


def main():
    args = parse_args()
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    folder = cached("mixed-album", make_mixed_album)
    files = files_of_rank(folder, rank, world_size, deal=args.variant == "fast")
    loader = DataLoader(Scans(files), batch_size=8, shuffle=True)
    model = DistributedDataParallel(
        nn.Sequential(
            nn.Conv2d(3, 12, 3, stride=2), nn.ReLU(), nn.Conv2d(12, 32, 3, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 4),
        )
    )  # fmt: skip
    clock = Clock(args.seconds)
    train(model, loader, clock)
    if rank == 0:
        clock.report()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

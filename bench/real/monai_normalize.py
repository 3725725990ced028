"""Train a MONAI U-Net on random crops of made CT volumes, which its transforms scale, normalize and flip."""

import time
import warnings

import numpy as np
import torch

warnings.simplefilter("ignore")
import monai.transforms.transform  # noqa: E402
from monai.data import DataLoader, Dataset  # noqa: E402
from monai.losses import DiceCELoss  # noqa: E402
from monai.networks.nets import UNet  # noqa: E402
from monai.transforms import (  # noqa: E402
    Compose,
    EnsureChannelFirstd,
    NormalizeIntensityd,
    RandFlipd,
    RandScaleIntensityd,
    RandSpatialCropd,
)  # fmt: skip
from monai.utils import set_determinism  # noqa: E402

monai.transforms.transform.MAX_SEED = 2**32 - 1  # the newest NumPy does not reduce its own integers by 2 ** 32
set_determinism(0)
VOLUMES, SIZE, CROP, EPOCHS, BATCH = 16, 128, 64, 5, 2
rng = np.random.default_rng(0)
places = np.stack(np.meshgrid(*[np.arange(SIZE)] * 3, indexing="ij"))


def volume():
    """An organ that is a bright ball in a dim body with noise, in Hounsfield units."""
    middle, radius = rng.uniform(SIZE / 4, SIZE * 3 / 4, (3, 1, 1, 1)), rng.uniform(SIZE / 8, SIZE / 4)
    organ = ((places - middle) ** 2).sum(0) < radius**2
    image = rng.normal(40, 30, (SIZE,) * 3) + 60 * organ
    return {"image": image.astype(np.float32), "label": organ.astype(np.float32)}


both = ["image", "label"]
transforms = Compose([
    EnsureChannelFirstd(both, channel_dim="no_channel"),
    NormalizeIntensityd("image"),
    RandSpatialCropd(both, (CROP,) * 3, random_size=False),
    RandFlipd(both, prob=0.5, spatial_axis=0),
    RandScaleIntensityd("image", factors=0.1, prob=0.5),
])  # fmt: skip
loader = DataLoader(Dataset([volume() for _ in range(VOLUMES)], transforms), batch_size=BATCH, shuffle=True)
network = UNet(3, in_channels=1, out_channels=2, channels=(8, 16, 32, 64), strides=(2, 2, 2), num_res_units=1)
criterion = DiceCELoss(to_onehot_y=True, softmax=True)
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)

began = time.perf_counter()
for epoch in range(EPOCHS):
    total = 0.0
    for batch in loader:
        optimizer.zero_grad()
        loss = criterion(network(batch["image"].as_tensor()), batch["label"].as_tensor())
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}", flush=True)
print(f"seconds={time.perf_counter() - began:.3f}")

"""A robot's arm learns from demonstrations. Planted: for each window of a demonstration, all of its file is opened,
read and unpacked; the fixed twin keeps the files open, and reads the window's rows.
"""

import h5py
import numpy as np
import torch
from common import Clock, cached, parse_args
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

EPISODES, LENGTH, SENSORS, JOINTS, WINDOW = 40, 480, 48, 7, 24


def build(folder):
    """Arms that swing, with their sensors, one file a demonstration."""
    rng = np.random.default_rng(70)
    mixing = rng.normal(size=(JOINTS, SENSORS))
    time = np.linspace(0, 12, LENGTH)[:, None]
    for episode in range(EPISODES):
        joints = np.sin(time * rng.uniform(0.5, 2, JOINTS) + rng.uniform(0, 6, JOINTS))
        sensors = joints @ mixing + 0.05 * rng.normal(size=(LENGTH, SENSORS))
        with h5py.File(folder / f"episode-{episode:03d}.h5", "w") as file:
            packed = {"compression": "gzip", "chunks": (WINDOW, SENSORS)}
            file.create_dataset("sensors", data=sensors.astype(np.float32), **packed)
            packed["chunks"] = (WINDOW, JOINTS)
            file.create_dataset("joints", data=joints.astype(np.float32), **packed)


class Demonstrations(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("episode-*.h5"))
        self.windows = LENGTH - WINDOW

    def __len__(self):
        return len(self.files) * self.windows

    def read(self, episode, start):
        """The sensors and the joints of one window."""
        with h5py.File(self.files[episode], "r") as file:
            sensors, joints = file["sensors"][:], file["joints"][:]
        return sensors[start : start + WINDOW], joints[start : start + WINDOW]

    def __getitem__(self, index):
        sensors, joints = self.read(*divmod(index, self.windows))
        now, later = joints[WINDOW // 2 - 1], joints[WINDOW // 2 :]
        return torch.from_numpy(sensors[: WINDOW // 2]), torch.from_numpy(later - now)


class SlicedDemonstrations(Demonstrations):
    def __init__(self, folder):
        super().__init__(folder)
        opened = [h5py.File(path, "r") for path in self.files]
        self.columns = [(file["sensors"], file["joints"]) for file in opened]

    def read(self, episode, start):
        sensors, joints = self.columns[episode]
        return sensors[start : start + WINDOW], joints[start : start + WINDOW]


class LoadedDemonstrations(Demonstrations):
    def __init__(self, folder):
        super().__init__(folder)
        self.loaded = []
        for path in self.files:
            with h5py.File(path, "r") as file:
                self.loaded.append((file["sensors"][:], file["joints"][:]))

    def read(self, episode, start):
        sensors, joints = self.loaded[episode]
        return sensors[start : start + WINDOW], joints[start : start + WINDOW]


class ActionChunks(nn.Module):
    """From what the sensors said, how the joints move next."""

    def __init__(self, width=96):
        super().__init__()
        self.embed = nn.Linear(SENSORS, width)
        self.places = nn.Parameter(0.02 * torch.randn(WINDOW // 2, width))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, JOINTS)

    def forward(self, sensors):
        return self.head(self.encoder(self.embed(sensors) + self.places))


class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01)

    def step(self, sensors, moves):
        loss = nn.functional.l1_loss(self.model(sensors), moves)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()

    def fit(self, clock):
        while not clock.done:
            for sensors, moves in self.loader:
                self.step(sensors, moves)
                clock.tick()
                if clock.done:
                    break


def main():
    args = parse_args()
    torch.manual_seed(0)
    kinds = {"slow": Demonstrations, "fast": SlicedDemonstrations, "free": LoadedDemonstrations}
    dataset = kinds[args.variant](cached("unseen-arm", build))
    sampler = RandomSampler(dataset, replacement=True, num_samples=6400)
    trainer = Trainer(ActionChunks(), DataLoader(dataset, batch_size=32, sampler=sampler))
    clock = Clock(args.seconds)
    trainer.fit(clock)
    clock.report()


if __name__ == "__main__":
    main()

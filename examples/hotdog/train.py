"""Hot dog or not hot dog? Trains a small image classifier: ``python train.py --epochs 3``."""

import argparse
import colorsys
import random
import time
from pathlib import Path

import make_data
import numpy as np
import torch
from PIL import Image
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, Dataset

HERE = Path(__file__).resolve().parent
RUNS = HERE / "runs"
CLASSES = ["not_hotdog", "hotdog"]
IMAGE_SIZE = 112
MEAN = np.array([0.485, 0.456, 0.406])
STD = np.array([0.229, 0.224, 0.225])


def random_crop(image, size):
    left = random.randint(0, image.width - size)
    top = random.randint(0, image.height - size)
    return image.crop((left, top, left + size, top + size))


def shift_hue(image, shift):
    """Turns the colour wheel a little, so that the light of one kitchen is not learnt."""
    shifted = image.copy()
    for y in range(image.height):
        for x in range(image.width):
            r, g, b = image.getpixel((x, y))
            h, s, v = colorsys.rgb_to_hsv(r / 255, g / 255, b / 255)
            r, g, b = colorsys.hsv_to_rgb((h + shift) % 1.0, s, v)
            shifted.putpixel((x, y), (int(r * 255), int(g * 255), int(b * 255)))
    return shifted


def augment(image):
    image = random_crop(image, IMAGE_SIZE)
    if random.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return shift_hue(image, random.uniform(-0.05, 0.05))


def to_tensor(image):
    pixels = (np.asarray(image) / 255.0 - MEAN) / STD
    return torch.from_numpy(pixels).permute(2, 0, 1)


class HotdogDataset(Dataset):
    def __init__(self, root, train, limit=None):
        self.train = train
        self.files = []
        for label, name in enumerate(CLASSES):
            self.files += [(path, label) for path in sorted((root / name).glob("*.jpg"))]
        random.Random(0).shuffle(self.files)
        self.files = self.files[:limit]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path, label = self.files[index]
        image = Image.open(path).convert("RGB")
        size = IMAGE_SIZE + 16 if self.train else IMAGE_SIZE
        image = image.resize((size, size), Image.Resampling.LANCZOS)
        if self.train:
            image = augment(image)
        return to_tensor(image), label


class HotdogNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 5, stride=2, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(2 * width, 4 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(4 * width * 49, 128), nn.ReLU(), nn.Dropout(0.3),
            nn.Linear(128, 2),
        )  # fmt: skip

    def forward(self, x):
        return self.classifier(self.features(x))


class Metrics:
    """Accuracy, F1 and AUC over everything seen so far."""

    def __init__(self):
        self.labels, self.scores = [], []

    def update(self, labels, logits):
        self.labels += labels.tolist()
        self.scores += torch.softmax(logits, dim=1)[:, 1].tolist()

    def compute(self):
        labels, scores = np.array(self.labels), np.array(self.scores)
        guesses = scores > 0.5
        auc = roc_auc_score(labels, scores) if len(set(self.labels)) == 2 else float("nan")
        return {"acc": accuracy_score(labels, guesses), "f1": f1_score(labels, guesses), "auc": auc}


def save_checkpoint(model, optimizer, epoch):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    torch.save(state, RUNS / "last.pt")


def train_one_epoch(model, loader, optimizer, criterion, epoch, metrics, log):
    model.train()
    for step, (images, labels) in enumerate(loader):
        logits = model(images.float())
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        metrics.update(labels, logits)
        scores = metrics.compute()
        columns = [epoch, step, loss.item(), scores["acc"], scores["f1"], scores["auc"]]
        log.write(",".join(str(value) for value in columns) + "\n")
        log.flush()
        if step % 5 == 0:
            save_checkpoint(model, optimizer, epoch)


def validate(model, loader):
    model.eval()
    metrics = Metrics()
    for images, labels in loader:
        metrics.update(labels, model(images.float()))
    return metrics.compute()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--limit", type=int, help="use only the first N training images")
    args = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    RUNS.mkdir(exist_ok=True)
    data = make_data.build()
    train_set = HotdogDataset(data / "train", train=True, limit=args.limit)
    train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
    val_loader = DataLoader(HotdogDataset(data / "val", train=False), batch_size=8)
    model = HotdogNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    criterion = nn.CrossEntropyLoss()
    metrics = Metrics()
    with open(RUNS / "log.csv", "w") as log:
        for epoch in range(args.epochs):
            start = time.time()
            train_one_epoch(model, train_loader, optimizer, criterion, epoch, metrics, log)
            scores = validate(model, val_loader)
            print(f"epoch {epoch}: {time.time() - start:.1f} s, validation:", end="")
            print("".join(f" {name} {value:.3f}" for name, value in scores.items()))
    save_checkpoint(model, optimizer, args.epochs)


if __name__ == "__main__":
    main()

"""Pictures of coloured rectangles, as text: run lengths of pixels, and the boxes."""

import random

import torch
from torch.utils.data import Dataset

SIZE, CLASSES, MOST_BOXES = 32, 3, 3
PALETTE = torch.tensor([(0.9, 0.2, 0.2), (0.2, 0.9, 0.2), (0.2, 0.3, 0.9), (0.1, 0.1, 0.1)])


def draw(rng):
    """One picture as ``run*colour`` words, row by row, and its boxes as (class, x0, y0, x1, y1)."""
    pixels = [[CLASSES] * SIZE for _ in range(SIZE)]
    boxes = []
    for _ in range(rng.randint(1, MOST_BOXES)):
        label, width, height = rng.randrange(CLASSES), rng.randint(6, 14), rng.randint(6, 14)
        x, y = rng.randint(0, SIZE - width), rng.randint(0, SIZE - height)
        boxes.append((label, x, y, x + width, y + height))
        for row in range(y, y + height):
            pixels[row][x : x + width] = [label] * width
    flat = [colour for row in pixels for colour in row]
    words, start = [], 0
    for position in range(1, len(flat) + 1):
        if position == len(flat) or flat[position] != flat[start]:
            words.append(f"{position - start}*{flat[start]}")
            start = position
    return " ".join(words), boxes


def make_records(seed, count):
    rng = random.Random(seed)
    return [draw(rng) for _ in range(count)]


class Pictures(Dataset):
    """Normalised pictures (3, H, W), boxes (N, 4) in pixels and classes (N)."""

    def __init__(self, records, training):
        self.records = records
        self.training = training

    def __len__(self):
        return len(self.records)

    def decode(self, index):
        text, boxes = self.records[index]
        image = torch.zeros(3, SIZE, SIZE)
        position = 0
        for word in text.split():
            run, colour = word.split("*")
            for _ in range(int(run)):
                row, column = divmod(position, SIZE)
                image[:, row, column] = PALETTE[int(colour)]
                position += 1
        corners = torch.tensor([box[1:] for box in boxes], dtype=torch.float32)
        return image, corners, torch.tensor([box[0] for box in boxes])

    def __getitem__(self, index):
        image, boxes, labels = self.decode(index)
        if self.training:
            if torch.rand(()) < 0.5:
                image = image.flip(-1)
                boxes = torch.stack([SIZE - boxes[:, 2], boxes[:, 1], SIZE - boxes[:, 0], boxes[:, 3]], 1)
            image = (image * (0.8 + 0.4 * torch.rand(()))).clamp(0, 1)
            image = image + 0.02 * torch.randn(3, SIZE, SIZE)
        return (image - 0.25) / 0.3, boxes, labels


def collate(items):
    """Images (B, 3, H, W), and lists of boxes and classes."""
    images, boxes, labels = zip(*items, strict=True)
    return torch.stack(images), list(boxes), list(labels)

"""Trains a Keras model on PyTorch. Planted: the PyDataset draws speckle for every image in Python; the cure draws it for
whole batches."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
from planted import parse_args, rate

SIZE = 28


class Scans(keras.utils.PyDataset):
    def __init__(self, batches, whole):
        super().__init__()
        self.batches, self.whole = batches, whole
        self.images = np.random.default_rng(0).random((32, SIZE, SIZE), np.float32)

    def __len__(self):
        return self.batches

    def speckled(self, image, rng):
        noisy = image.copy()
        for row in range(SIZE):
            for column in range(SIZE):
                noisy[row, column] *= 1 + 0.2 * rng.standard_normal()
        return noisy

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        if self.whole:
            noisy = self.images * (1 + 0.2 * rng.standard_normal(self.images.shape, np.float32))
        else:
            noisy = np.stack([self.speckled(image, rng) for image in self.images])
        return noisy[..., None], np.arange(32) % 10


def main():
    args = parse_args()
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.layers.Input((SIZE, SIZE, 1)),
            keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(10),
        ]
    )
    model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    with rate(args.steps):
        history = model.fit(Scans(args.steps, whole=args.variant == "fast"), epochs=1, verbose=0)
    print("loss", history.history["loss"])


main()

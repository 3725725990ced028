"""Trains a Keras model on JAX. Planted: a callback sums up all weights after each batch; the cure does so every hundred."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import json
import tempfile

import keras
import numpy as np
from planted import parse_args, rate


class WeightJournal(keras.callbacks.Callback):
    def __init__(self, file, every):
        super().__init__()
        self.file, self.every = file, every

    def on_train_batch_end(self, batch, logs=None):
        if batch % self.every:
            return
        for weight in self.model.get_weights():
            quantiles = np.quantile(weight, [0.01, 0.25, 0.5, 0.75, 0.99])
            self.file.write(json.dumps([float(value) for value in quantiles]) + "\n")


def main():
    args = parse_args()
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.layers.Input((64,)),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(64),
        ]
    )
    model.compile(optimizer="adam", loss="mse")
    x = np.random.default_rng(0).normal(size=(args.steps * 32, 64)).astype("float32")
    with tempfile.TemporaryFile("w") as file, rate(args.steps):
        journal = WeightJournal(file, every=1 if args.variant == "slow" else 100)
        history = model.fit(x, x, batch_size=32, epochs=1, verbose=0, callbacks=[journal])
    print("loss", history.history["loss"])


main()

"""Classifies with JAX. Planted: a confusion matrix over all samples so far is counted in Python in every step; the cure
counts whole batches."""

import jax
import jax.numpy as jnp
import numpy as np
from planted import parse_args, rate


class ConfusionMatrix:
    def __init__(self, classes):
        self.counts = np.zeros((classes, classes), np.int64)

    def update(self, predicted, labels):
        for guess, label in zip(np.asarray(predicted), labels):
            self.counts[label, guess] += 1

    def update_whole(self, predicted, labels):
        np.add.at(self.counts, (np.asarray(labels), np.asarray(predicted)), 1)


@jax.jit
def train_step(params, x, y):
    def loss_fn(p):
        logits = jnp.tanh(x @ p[0]) @ p[1]
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(y)), y]), logits

    (loss, logits), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
    return [p - 0.1 * g for p, g in zip(params, grads)], loss, logits.argmax(1)


def main():
    args = parse_args()
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20_000, 16)).astype(np.float32), rng.integers(0, 10, 20_000)
    params = [jnp.asarray(rng.normal(size=(16, 32)) * 0.1), jnp.asarray(rng.normal(size=(32, 10)) * 0.1)]
    matrix = ConfusionMatrix(10)
    update = matrix.update if args.variant == "slow" else matrix.update_whole
    with rate(args.steps):
        for _ in range(args.steps):
            params, loss, predicted = train_step(params, x, y)
            update(predicted, y)
    print("loss", float(loss), "right", int(np.trace(matrix.counts)))


main()

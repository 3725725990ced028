"""Fits images with JAX and Optax. Planted: a generator bends each image on the host; the cure bends them once."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from planted import parse_args, rate
from scipy import ndimage

OPTIMIZER = optax.adam(1e-3)


def bend(image, phase):
    rows, columns = np.mgrid[0:48, 0:48]
    shift = 3 * np.sin(columns / 7 + phase)
    return ndimage.map_coordinates(image, [rows + shift, columns + shift.T], order=3, mode="reflect")


def bent(images):
    return np.stack([bend(image, 0.5) for image in images]).reshape(len(images), -1).astype(np.float32)


def batches(images, count, in_advance):
    ready = bent(images) if in_advance else None
    for _ in range(count):
        yield ready if in_advance else bent(images)


@jax.jit
def train_step(params, state, x):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((jnp.tanh(x @ p["in"]) @ p["out"] - x) ** 2))(params)
    updates, state = OPTIMIZER.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


def main():
    args = parse_args()
    rng = np.random.default_rng(0)
    params = {
        "in": jnp.asarray(rng.normal(size=(2304, 64)) * 0.02),
        "out": jnp.asarray(rng.normal(size=(64, 2304)) * 0.1),
    }
    state = OPTIMIZER.init(params)
    images = rng.random((24, 48, 48))
    with rate(args.steps):
        for x in batches(images, args.steps, in_advance=args.variant == "fast"):
            params, state, loss = train_step(params, state, x)
        loss.block_until_ready()
    print("loss", float(loss))


main()

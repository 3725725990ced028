"""Trains on texts of many lengths with JAX and Optax. Planted: batches are as long as their longest text, so that the step
is compiled anew for each length; the cure pads to a few."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from planted import parse_args, rate

OPTIMIZER = optax.adam(1e-3)


def loss_fn(params, tokens, mask):
    hidden = jnp.tanh(params["embed"][tokens] @ params["mix"])
    logits = hidden @ params["embed"].T
    losses = optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:])
    return (losses * mask[:, 1:]).sum() / mask[:, 1:].sum()


@jax.jit
def train_step(params, state, tokens, mask):
    loss, grads = jax.value_and_grad(loss_fn)(params, tokens, mask)
    updates, state = OPTIMIZER.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


def padded(rng, length, to):
    tokens = np.zeros((16, to), np.int32)
    tokens[:, :length] = rng.integers(1, 256, (16, length))
    return tokens, (tokens > 0).astype(np.float32)


def main():
    args = parse_args()
    rng = np.random.default_rng(0)
    params = {"embed": jnp.asarray(rng.normal(size=(256, 64)) * 0.1), "mix": jnp.eye(64)}
    state = OPTIMIZER.init(params)
    lengths = rng.permutation(np.arange(20, 20 + args.steps))
    with rate(args.steps):
        for length in lengths:
            to = int(length) if args.variant == "slow" else 64 * -(-int(length) // 64)
            params, state, loss = train_step(params, state, *padded(rng, int(length), to))
    print("loss", float(loss))


main()

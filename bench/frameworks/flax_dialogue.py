"""Trains a Flax model on dialogues. Planted: each batch is padded to its own longest dialogue, so that every length is
traced and compiled anew; the cure pads all to one length."""

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from planted import parse_args, rate


class Tagger(nnx.Module):
    def __init__(self, rngs):
        self.embed = nnx.Embed(256, 64, rngs=rngs)
        self.mix = nnx.Linear(64, 128, rngs=rngs)
        self.out = nnx.Linear(128, 256, rngs=rngs)

    def __call__(self, tokens):
        words = self.embed(tokens)
        context = jnp.cumsum(words, axis=1) / jnp.arange(1, tokens.shape[1] + 1)[None, :, None]
        return self.out(jnp.tanh(self.mix(words + context)))


@nnx.jit
def train_step(model, optimizer, tokens):
    def loss_of(model):
        losses = optax.softmax_cross_entropy_with_integer_labels(model(tokens[:, :-1]), tokens[:, 1:])
        return (losses * (tokens[:, 1:] > 0)).sum() / (tokens[:, 1:] > 0).sum()

    loss, gradients = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, gradients)
    return loss


def dialogues(count, to):
    rng = np.random.default_rng(0)
    for _ in range(count):
        lengths = rng.integers(40, 400, 8)
        longest = -(-int(lengths.max()) // to) * to
        batch = np.zeros((8, longest), np.int32)
        for row, length in enumerate(lengths):
            batch[row, :length] = rng.integers(1, 256, length)
        yield batch


def main():
    args = parse_args()
    model = Tagger(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    with rate(args.steps):
        for tokens in dialogues(args.steps, to=1 if args.variant == "slow" else 400):
            loss = train_step(model, optimizer, tokens)
        loss.block_until_ready()
    print("loss", round(float(loss), 2))


if __name__ == "__main__":
    main()

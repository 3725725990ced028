"""Whether what a run stores is what its models held."""

from __future__ import annotations

import hashlib
import io

import numpy as np

from unstall.optimize.sameness import ObservedTensor
from unstall.prove.left_behind.effects import Content, Effects
from unstall.prove.runner import WholeRun
from unstall.prove.stored import first_difference


def run(held, stored):
    """A run whose model holds one array and that stores another as model.npy."""
    file = io.BytesIO()
    np.save(file, stored)
    tensor = ObservedTensor(
        "weights.0.w",
        3,
        str(held.dtype),
        held.shape,
        hashlib.blake2b(held.tobytes(), digest_size=16).digest(),
        held.tobytes(),
    )
    return WholeRun(1.0, False, 0.0, Effects(0, "", {"/p/model.npy": Content.of(file.getvalue())}), tensors=[tensor])


WEIGHTS = np.linspace(0, 1, 64, dtype=np.float32)
ROUNDED = WEIGHTS * np.float32(1 + 2**-23)
THINNED = np.where(np.arange(64) == 7, 0, ROUNDED).astype(np.float32)


def test_what_is_stored_must_be_what_is_held_where_the_originals_is():
    difference = first_difference(run(WEIGHTS, WEIGHTS), run(ROUNDED, THINNED))
    assert difference.place == "model.npy" and difference.kind == "values"
    assert first_difference(run(WEIGHTS, WEIGHTS), run(ROUNDED, ROUNDED)) is None


def test_an_original_that_stores_other_numbers_tells_nothing():
    assert first_difference(run(WEIGHTS, 2 * WEIGHTS), run(ROUNDED, THINNED)) is None


def test_few_numbers_may_be_the_same_by_chance():
    few = WEIGHTS[:4]
    assert first_difference(run(few, few), run(few, 2 * few)) is None

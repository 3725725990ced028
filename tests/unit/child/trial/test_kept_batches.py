"""How many of the batches that loaders gave are alive at the end of each epoch."""

from __future__ import annotations

import torch

from unstall.child.trial.kept_batches import KeptBatches

DATA, FEWER = 1, 2  # identities of what loaders draw from


def epoch(kept, batches, data=DATA):
    """Give these batches in turn, and end."""
    for batch in batches:
        kept.given(batch, data)
    kept.ended(data)


def made():
    """Two batches of two tensors each, new ones."""
    return [{"x": torch.ones(3, 2), "y": (torch.zeros(3),)} for _ in range(2)]


def test_what_somebody_keeps_is_alive_and_all_else_is_not():
    kept, somebody = KeptBatches(), []
    for _ in range(3):
        batches = made()
        somebody.append(batches[0]["x"])
        epoch(kept, batches)
        del batches
        kept.ended(DATA)
    assert kept.ends() == [(4, 4), (4, 1), (8, 5), (8, 2), (12, 6), (12, 3)]


def test_a_batch_that_is_given_again_counts_once():
    kept, batches = KeptBatches(), made()
    for _ in range(3):
        epoch(kept, batches)
    assert kept.ends() == [(4, 4), (8, 4), (12, 4)]


def test_the_ends_are_those_of_the_data_that_gave_the_most():
    kept = KeptBatches()
    epoch(kept, made()[:1], FEWER)
    epoch(kept, made())
    assert kept.ends() == [(6, 4)], "the caller has the last of them"


def test_where_no_loader_has_ended_there_is_no_end():
    kept = KeptBatches()
    assert kept.ends() == []
    kept.given(torch.ones(1), DATA)
    assert kept.ends() == []

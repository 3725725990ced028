"""Whether a changed program does the same twice, of made-up runs."""

from __future__ import annotations

import pytest
from made_up_proofs import make_run

from unstall.prove.reproducible import lost
from unstall.prove.timing import ProofPair


def pairs(originals, changed, shift=None):
    return [ProofPair(make_run(output=a), make_run(output=b), shift) for a, b in zip(originals, changed)]


@pytest.mark.parametrize(
    ("originals", "changed", "is_lost"),
    [
        (["0.51\n", "0.51\n"], ["0.52\n", "0.53\n"], True),
        (["0.51\n", "0.51\n"], ["0.52\n", "0.52\n"], False),
        (["0.51\n", "0.52\n"], ["0.52\n", "0.53\n"], False),
        (["took 3.1 s\n", "took 3.1 s\n"], ["took 2.1 s\n", "took 2.2 s\n"], False),
        (["0.51\n"], ["0.52\n"], False),
    ],
)
def test_what_differs_between_runs_of_the_changed_program_alone(originals, changed, is_lost):
    reason = lost(pairs(originals, changed))
    assert (reason is not None) == is_lost
    assert not is_lost or reason.startswith("it does not do the same twice (standard output, line 1: 0.53 instead of")


def test_runs_under_other_seeds_are_not_asked():
    assert lost(pairs(["1\n", "1\n"], ["1\n", "2\n"], shift=7)) is None

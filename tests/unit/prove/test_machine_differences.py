"""What a changed program takes of the machine and the original does not, of made-up runs."""

from __future__ import annotations

import pytest

from unstall.prove.left_behind.effects import Effects
from unstall.prove.machine_differences import more_of_it
from unstall.prove.runner import WholeRun
from unstall.prove.timing import ProofPair


def run(cpu_s=1.0, **given):
    return WholeRun(1.0, False, 0.0, Effects(0, ""), cpu_s=cpu_s, **given)


@pytest.mark.parametrize(
    ("original", "changed", "words"),
    [
        (run(2.0), run(6.0), "it takes 6.0 s of the cores in a run, and the original 2.0 s"),
        (run(), run(locked=0.9), "it holds a lock"),
        (run(most_threads=4), run(most_threads=300), "it has 300 threads at once, and the original 4"),
        (run(most_threads=4), run(most_threads=40), None),
        (run(most_threads=100), run(most_threads=300), None),
        (run(most_descriptors=40), run(most_descriptors=900), "it has 900 files open at once, and the original 40"),
        (run(), run(addresses={"tcp port 6117"}), "it uses tcp port 6117 in each run, which two at a time cannot"),
        (run(addresses={"tcp port 6117"}), run(addresses={"tcp port 6117"}), None),
        (run(2.0), run(3.5), None),
        (run(0.1), run(0.8), None),
        (run(locked=0.9), run(locked=0.9), None),
    ],
)
def test_what_is_taken_beside_the_results(original, changed, words):
    found = more_of_it([ProofPair(original, changed)] * 3)
    assert found is None if words is None else found.startswith(words)


def test_a_lock_that_one_run_holds_is_none():
    assert more_of_it([ProofPair(run(), run(locked=0.9)), ProofPair(run(), run())]) is None
    assert more_of_it([]) is None


def test_an_address_that_is_another_in_each_run_is_none():
    runs = [run(addresses=frozenset({f"tcp port {port}"})) for port in (40000, 40001)]
    assert more_of_it([ProofPair(run(), each) for each in runs]) is None

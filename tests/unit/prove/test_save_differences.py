"""Files that are saved later or in another size, of made-up runs; how often they are is asked in test_judge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unstall.prove.left_behind.effects import Content, Effects
from unstall.prove.left_behind.saves import Saved
from unstall.prove.runner import WholeRun
from unstall.prove.save_differences import delayed, resized
from unstall.prove.timing import ProofPair

MODEL = "/program/model.pt"


def sized(before, after, text=None):
    """A pair of runs, with the sizes that each saves its model in."""
    runs = [
        WholeRun(1.0, False, 0.0, Effects(0, "", {MODEL: Content(b"", 3, text)}), saves={MODEL: Saved(3, 3, (), sizes)})
        for sizes in (before, after)
    ]
    return ProofPair(*runs)


def test_checkpoints_of_another_size_than_any_of_the_originals():
    drafts = sized((1000, 1000), (500, 500, 1000))
    assert resized([drafts, drafts]).detail == "saved with 500 bytes, where the original saves 1000"
    assert resized([drafts, sized((1000, 1000), (1000, 1000))]) is None  # not in each of its runs
    assert resized([sized((500, 1000), (500, 500, 1000))]) is None
    assert resized([sized((1000,), (1010, 990))]) is None
    assert resized([sized((1000,), (500,), text="log")]) is None
    assert resized([]) is None and resized([sized((), ())]) is None


def pair(before, after, *, steps=40, text=None):
    """Runs of a step a second, with the moments at which each saves its model."""
    clock = {"began": 0.0, "times": [float(step) for step in range(1, steps + 1)]}
    runs = []
    for moments in (before, after):
        effects = Effects(0, "", {MODEL: Content(b"", 3, text)})
        saves = {MODEL: Saved(len(moments), len(moments), tuple(moments))}
        runs.append(WholeRun(steps, False, 0.0, effects, clock=clock, saves=saves))
    return ProofPair(*runs)


@pytest.mark.parametrize(
    ("before", "after", "detail"),
    [
        (
            [10.5, 20.5, 30.5],
            [40.5, 40.6, 40.7],
            "saved after 40 steps, where the original saves it after 10",
        ),
        ([10.5, 40.5], [40.5, 40.6], "saved after 40 steps, where the original saves it after 10"),
        ([10.5], [40.5], "saved after 40 steps, where the original saves it after 10"),
        ([10.5, 20.5, 30.5], [12.5, 19.9, 30.5], None),  # beside the next steps
        ([40.5], [40.6], None),
        ([10.5, 20.5], [40.5], None),  # of which fewer() tells
        ([], [], None),
    ],
)
def test_saves_that_are_put_off(before, after, detail):
    found = delayed([pair(before, after), pair(before, after)])
    assert (found and (found.difference.place, found.difference.detail)) == (detail and (MODEL, detail))
    assert delayed([pair(before, after), pair(before, before)]) is None
    assert delayed([pair(before, after, text="log")]) is None
    assert delayed([]) is None


def test_a_file_that_is_saved_every_so_many_seconds_may_be_put_off():
    quick = pair([10.5, 20.5], [10.5, 20.5])
    quick = ProofPair(
        quick.original, replace(quick.changed, clock={"began": 0.0, "times": [s / 2 for s in range(1, 41)]})
    )
    found = delayed([quick])
    assert found is not None and found.is_by_time
    assert not delayed([pair([10.5], [40.5])]).is_by_time
    at_the_end = replace(quick.changed, saves={MODEL: Saved(2, 2, (20.1, 20.2))})
    assert not delayed([ProofPair(quick.original, at_the_end)]).is_by_time

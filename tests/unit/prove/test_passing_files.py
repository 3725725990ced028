"""Files that are there for a while only, and for others."""

from __future__ import annotations

import pytest

from unstall.prove.left_behind.effects import Content, Effects
from unstall.prove.left_behind.saves import Saved
from unstall.prove.passing_files import missing
from unstall.prove.runner import WholeRun
from unstall.prove.timing import ProofPair


def run(saves, left=()):
    effects = Effects(0, "", {path: Content.of(b"1") for path in left})
    return WholeRun(1.0, False, 0.0, effects, saves=saves)


def pairs(before, after, left=()):
    return [ProofPair(run(before, left), run(after, left))] * 3


def test_files_that_nobody_reads_and_that_are_no_longer_written_are_missed():
    before = {"/tmp/a1/draft-0.pt": Saved(1, 1, sizes=(900,)), "/tmp/a1/draft-5.pt": Saved(2, 2, sizes=(900,))}
    words = missing(pairs(before, {"/tmp/b2/draft-0.pt": Saved(1, 1, sizes=(900,))}))
    assert words == (
        "it saves files that it does not read and that are gone at its end, where others may look at them meanwhile, "
        "once, and the original 3 times (/tmp/a1/draft-5.pt, say)"
    )
    assert " 0 times, and" in missing(pairs(before, {}))


def test_of_a_file_that_is_never_closed_what_is_in_it_counts():
    before = {"/tmp/a1/log.jsonl": Saved(0, 0, grown_to=90_000)}
    assert "writes 900 bytes into" in missing(pairs(before, {"/tmp/b2/log.jsonl": Saved(0, 0, grown_to=900)}))
    assert missing(pairs(before, {"/tmp/b2/log.jsonl": Saved(0, 0, grown_to=80_000)})) is None


def test_other_names_tell_nothing_and_neither_does_what_one_run_lacks():
    assert missing(pairs({"/tmp/a1/x": Saved(2, 2, sizes=(900,))}, {"/tmp/b2/y": Saved(1, 2, sizes=(900,))})) is None
    all_but_one = [*pairs({"/tmp/a1/x": Saved(2, 2, sizes=(900,))}, {}), *pairs({}, {})]
    assert missing(all_but_one) is None
    assert missing([]) is None


@pytest.mark.parametrize(
    ("path", "saved", "left"),
    [
        ("/tmp/part", Saved(3, 3, sizes=(900,), is_used=True), ()),
        ("/program/model.pt", Saved(3, 3, sizes=(900,)), ("/program/model.pt",)),
        ("/tmp/tried", Saved(1, 1, sizes=(4,), grown_to=4), ()),
        ("/tmp/torchinductor_me/a.lock", Saved(3, 3, sizes=(900,)), ()),
    ],
)
def test_what_the_program_uses_what_stays_and_caches_of_libraries_are_none(path, saved, left):
    assert missing(pairs({path: saved}, {}, left)) is None

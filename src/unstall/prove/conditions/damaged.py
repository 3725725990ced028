"""Whether both sides do the same with a sample that is damaged, or other than all the others, or alone in its batch, or
with far more of them, or with texts that are all written otherwise.

A change may hide an error of its data, or cut them to what it has seen: with these data it does the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from unstall.prove import thresholds
from unstall.prove.conditions import ends
from unstall.prove.runner import WholeRun
from unstall.text.units import bytes_


class DamagedData(NamedTuple):
    """What is done to one sample."""

    plan: Mapping[str, Any]
    where: str
    """In words that follow what happens."""
    is_sound: bool = False
    """Whether a program may well take such data: where the original does not, nothing is compared."""
    of_text: bool = False
    """Whether only a text can be so."""
    of_all: bool = False
    """Whether all are so, so that figures are worth the runs that tell how far they may be off, too."""
    may_fail: bool = False
    """Whether it says nothing that the changed program tells an error: such data are none that it need take."""
    is_course: bool = False
    """Whether the training takes another course with it, so that only exact results can be compared."""
    may_take_more: bool = False
    """Whether it says nothing that the changed program takes too long or too much memory: it does all at first."""

    def is_borne_by(self, original: WholeRun) -> bool:
        """Whether the original's run with such data tells what the changed program is to do."""
        is_so = original.changed_data is not None and not takes_too_much(original)
        return is_so and not (self.is_sound and original.effects.status)

    def excuse(self, original: WholeRun, changed: WholeRun) -> str:
        """Why the changed program's run tells nothing, in words; nothing where it does."""
        if self.may_take_more and takes_too_much(changed):
            return "it takes too much time or memory"
        if changed.changed_data != original.changed_data:  # it makes its datasets of something else
            return "the change makes its datasets otherwise"
        return ends.of_error(changed) if self.may_fail else ""


KINDS = (
    DamagedData({"damaged": {"kind": "spoiled"}}, " where a sample is damaged"),
    DamagedData({"damaged": {"kind": "spoiled", "which": 1}}, " where a sample of its second dataset is damaged"),
    DamagedData({"damaged": {"kind": "long"}}, " where a sample is far longer than the others"),
    DamagedData({"damaged": {"kind": "between"}}, " where a number of a sample is no whole one", is_sound=True),
    DamagedData({"damaged": {"kind": "cut"}}, " where the last sign of a text is missing", of_text=True),
    DamagedData({"damaged": {"kind": "joined"}}, " where a sign of a text is missing", of_text=True),
    DamagedData(
        {"damaged": {"kind": "foreign"}},
        " where a text has other letters and signs than usual",
        is_sound=True,
        of_text=True,
    ),
    DamagedData(
        {"damaged": {"kind": "short", "which": None}},
        " where a sample of each dataset is its first word",
        is_sound=True,
        of_text=True,
        may_fail=True,
    ),
    DamagedData(
        {"letters": {}},
        " where a letter of all texts, and of what they are looked up in, is none of Latin-1",
        is_sound=True,
        of_text=True,
        of_all=True,
    ),
    DamagedData({"damaged": {"kind": "more"}}, " where a sample has more parts than usual", is_sound=True),
    DamagedData({"lone": {}}, " where the last batch of an epoch has one sample", is_sound=True),
    DamagedData({"many": {"times": 2}}, " where epochs are twice as long", is_sound=True, is_course=True),
    DamagedData({"many": {}}, " where there are far more samples", is_sound=True, may_take_more=True),
)

LONGEST: Mapping[str, Any] = {"damaged": {"kind": "longest"}}


def takes_more(rises: tuple[float, float]) -> str:
    """In words, where the changed program takes much more memory for one very long sample; nothing where not.

    ``rises``: bytes that the original takes more than usual, and that the changed program does.
    """
    original, changed = rises
    if changed <= thresholds.GROWTH_OVER * max(original, 0.0) + thresholds.LEAST_RISE:
        return ""
    return (
        f"with one sample 200 times as long as usual it takes {bytes_(changed)} more, "
        f"and the original {bytes_(max(original, 0.0))}"
    )


def has_text(run: WholeRun) -> bool:
    """Whether the data that were changed have a text."""
    return bool((run.changed_data or {}).get("is_text"))


def takes_too_much(run: WholeRun) -> bool:
    """Whether a run was ended before it was over."""
    return run.timed_out or bool((run.changed_data or {}).get("too_large"))

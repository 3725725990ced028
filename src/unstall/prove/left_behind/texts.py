"""The words and figures of a text, and which of these are of time (``3.2 s``, ``120 it/s``, ``12:31:07``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unstall.prove import thresholds

_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")
_A_MOMENT = "\0"  # no text holds one: what does is none
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]?|\d{1,2}:\d\d(?::\d\d)?(?:\.\d+)?|\b0x[0-9a-f]+|\b1[6-9]\d{8}(?:\.\d+)?\b")
_UNIT = r"(?:[mnuµ]?s|secs?|seconds?|min|minutes?|h|hours?)"
_WORK = r"(?:it|iters?|iterations?|steps?|samples?|images?|batch(?:es)?|tokens?|rows?|examples?|epochs?)"
_NUMBER_NEXT = r"[ \t]*[:=]?[ \t]*[-+.\d]"  # after it "min" is the least of something
_TIME_AFTER = re.compile(
    rf"[ \t]*(?:{_UNIT}\b(?<!min)|min\b(?!{_NUMBER_NEXT})|\w*/{_UNIT}\b|{_WORK} (?:per|a) {_UNIT}\b)", re.IGNORECASE
)
_TIME_BEFORE = re.compile(
    rf"(?:\b|_)(?:time|elapsed|took|duration|seconds|secs|fps|sps|mfu|throughput|{_WORK}(?:[_ ]per[_ ]|[/_]){_UNIT}"
    rf"|{_UNIT}(?:[_ ]per[_ ]|/){_WORK})"
    r"['\"]?\s*[:=(]?\s*$",
    re.IGNORECASE,
)

_SINGLE_DIGITS = 7
"""Digits from which a number may be one of single precision in full: it has 7.2."""


class Figure(NamedTuple):
    """A number in a text."""

    text: str
    line: int
    is_time: bool


def split(text: str) -> tuple[list[str], list[Figure]]:
    """The words of a text between its numbers, and these; a moment or an address is a word, whichever it is."""
    text = _MOMENT.sub(_A_MOMENT, text)
    words, figures, end, line = [], [], 0, 1
    for match in _NUMBER.finditer(text):
        before = text[end : match.start()]
        line += before.count("\n")
        words.append(before)
        around = text[max(0, match.start() - 40) : match.start()].rpartition("\n")[2]
        is_time = bool(_TIME_AFTER.match(text, match.end()) or _TIME_BEFORE.search(around))
        figures.append(Figure(match[0], line, is_time))
        end = match.end()
    return [*words, text[end:]], figures


def all_in_one_direction(figures: Sequence[Figure], originals: Sequence[Figure]) -> str | None:
    """That figures are cut off where they were rounded, say: where many differ, rounding goes both ways."""
    pairs = [(float(a.text), float(b.text)) for a, b in zip(figures, originals) if a.text != b.text and not a.is_time]
    smaller = sum(after < before for after, before in pairs)
    if len(pairs) < thresholds.ONE_SIDED or smaller not in (0, len(pairs)):
        return None
    return f"{len(pairs)} figures differ, and all of them are {'smaller' if smaller else 'larger'} than before"


def last_place(text: str) -> float:
    """One unit in the last place that is written."""
    digits, _, exponent = text.lower().partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


def single_precision(text: str) -> float:
    """Half a unit in the last place of the number of single precision that is written in full; 0 for any other.

    Two sums of the same numbers differ by that much, whether or not one unit in the last place of what went in shows.
    """
    digits = re.sub(r"[eE].*|\D", "", text).lstrip("0")
    with np.errstate(over="ignore"):
        single = np.float32(text)
    in_full = float(text) in (float(single), float(str(single)))  # as Python and as NumPy write it
    if len(digits) < _SINGLE_DIGITS or not np.isfinite(single) or not in_full:
        return 0.0
    return float(np.spacing(abs(single))) / 2


def first_differing_line(before: str, after: str) -> tuple[int, str, str]:
    """The first line whose words differ: its number, and both."""
    pairs = [*zip(before.splitlines(), after.splitlines())]
    for number, (a, b) in enumerate(pairs, 1):
        if split(a)[0] != split(b)[0]:
            return number, a[:80], b[:80]
    longer = [*before.splitlines()[len(pairs) :], ""][0], [*after.splitlines()[len(pairs) :], ""][0]
    return len(pairs) + 1, longer[0][:80], longer[1][:80]

"""How both sides tell of a training that has gone astray, to its end: whether it ends so, and what their files say.

What computes with numbers that are none may well come to other figures in each way to compute it. But who reads a log
reads ``NaN`` where JSON has it, and not ``nan``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from unstall.prove.left_behind.effects import Content, Effects
from unstall.prove.left_behind.names import by_known_names
from unstall.records.proof import Difference

PLAN: Mapping[str, Any] = {"stress": {"nan": True}}
WHERE = " where a model gives what is not a number to the end of the run"
_NO_NUMBER = re.compile(r"(?<![A-Za-z_])(?:nan|inf(?:inity)?|null|none)(?![A-Za-z_])", re.IGNORECASE)


def first_difference(original: Effects, changed: Effects) -> Difference | None:
    """The first text in which what is no number is spelled as the original never does; None where there is none."""
    before, after = by_known_names(original.contents), by_known_names(changed.contents)
    for path, content in sorted(before.items()):
        spelled, otherwise = _spelled(content), _spelled(after.get(path))
        if spelled and otherwise - spelled:
            detail = f"{min(otherwise - spelled)!r}, which the original spells {', '.join(map(repr, sorted(spelled)))}"
            return Difference(kind="effects", place=path, detail=detail)
    return None


def _spelled(content: Content | None) -> frozenset[str]:
    return frozenset(_NO_NUMBER.findall((content.text if content else None) or ""))

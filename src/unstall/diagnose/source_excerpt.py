"""The source around the lines that a report blames, as it was during the run: files change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from unstall.diagnose.source import lines_of
from unstall.records.archive import Excerpt
from unstall.records.report import Culprit, Report

_BEFORE, _AFTER = 14, 6
_LONGEST_LINE = 400
_DEFINITION = re.compile(r"\s*(?:async\s+)?def\s")


def of_report(report: Report, known: Iterable[Excerpt] = ()) -> list[Excerpt]:
    """The source around the culprit of each finding, each place once.

    ``known`` excerpts, such as an archive's, come first; a file is read only for what is not in them.
    """
    excerpts = [*known]
    for culprit in _culprits(report):
        if not any(excerpt.holds(culprit.file, culprit.line) for excerpt in excerpts):
            quoted = around(culprit)
            excerpts += [quoted] if quoted is not None else []
    return excerpts


def around(culprit: Culprit) -> Excerpt | None:
    """The function that the line is in, or as much of it as is near; None where the file does not say what was quoted.

    A report names its files itself, and one from elsewhere could name any: what it does not quote is not shown.
    """
    lines = lines_of(culprit.file)
    at = culprit.line - 1
    if not culprit.code or not 0 <= at < len(lines) or lines[at].strip() != culprit.code.strip():
        return None
    first, end = _function(lines, at)
    first, end = max(first, at - _BEFORE), min(end, at + _AFTER + 1)
    while not lines[end - 1].strip():
        end -= 1
    return Excerpt(culprit.file, first + 1, [line.rstrip("\r\n")[:_LONGEST_LINE] for line in lines[first:end]])


def _culprits(report: Report) -> Iterator[Culprit]:
    for finding in (report.verdict, *report.findings):
        if finding.culprit is not None:
            yield finding.culprit


def _function(lines: list[str], at: int) -> tuple[int, int]:
    """First line and end of the function around a line, by indentation; of the whole file outside of any."""
    first = at
    while first > 0 and not (_DEFINITION.match(lines[first]) and _indent(lines[first]) < max(_indent(lines[at]), 1)):
        first -= 1
    if not _DEFINITION.match(lines[first]):
        return 0, len(lines)
    end = at + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > _indent(lines[first])):
        end += 1
    return first, end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())

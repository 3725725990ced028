"""The source around a culprit, highlighted, where the file still says what it said during the run."""

from __future__ import annotations

import html
import linecache
import re
import unicodedata
from typing import Any

from unstall.records import Culprit
from unstall.report.html.markup import Markup, el
from unstall.report.plain import plain

_BEFORE, _AFTER = 14, 6
_DEFINITION = re.compile(r"\s*(?:async\s+)?def\s")
_LONGEST_LINE = 200
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control characters, direction marks, halves of characters, line ends


def excerpt(culprit: Culprit) -> Markup | None:
    """The culprit's line and a few around it; that line alone where the file is gone or has changed since.

    A report names its files itself, and one from elsewhere could name any. So a file is shown only where its line is
    the one the report quotes.
    """
    if not culprit.code:
        return None
    lines = linecache.getlines(culprit.file)
    at = culprit.line - 1
    if not 0 <= at < len(lines) or plain(lines[at]) != plain(culprit.code):
        return _figure([culprit.code], culprit.line, culprit.line)
    first, end = _around(lines, at)
    return _figure(lines[first:end], first + 1, culprit.line)


def highlighted(code: str, language: str) -> list[Markup]:
    """Lines of code as markup whose classes the style sheet colours: ``python`` or ``diff``."""
    from pygments.lexers import DiffLexer, PythonLexer

    lexer: Any = {"python": PythonLexer, "diff": DiffLexer}[language](stripnl=False, ensurenl=False)
    lines = [_clean(line) for line in code.split("\n")]
    marked: list[list[Markup]] = [[] for _ in lines]
    at = 0
    for kind, value in lexer.get_tokens("\n".join(lines)):
        for i, piece in enumerate(value.split("\n")):
            at += i > 0
            if piece and at < len(marked):
                marked[at].append(_token(kind, piece))
    return [Markup("".join(pieces)) for pieces in marked]


def _around(lines: list[str], at: int) -> tuple[int, int]:
    """First line and end of what to show: the function the line is in, or the lines next to it if that is long."""
    first = at
    while first > 0 and not (_DEFINITION.match(lines[first]) and _indent(lines[first]) < max(_indent(lines[at]), 1)):
        first -= 1
    inside = bool(_DEFINITION.match(lines[first]))
    end = at + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > _indent(lines[first])):
        end += 1
    if not inside:
        first, end = 0, len(lines)
    return max(first, at - _BEFORE), min(end, at + _AFTER + 1)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _figure(lines: list[str], first: int, blamed: int) -> Markup:
    code = [_clean(line) for line in lines]
    while len(code) > 1 and not code[-1].strip():
        code.pop()
    indent = min((_indent(line) for line in code if line.strip()), default=0)
    rows = []
    for number, marked in enumerate(highlighted("\n".join(line[indent:] for line in code), "python"), first):
        here = number == blamed
        rows.append(
            el(
                "span",
                el("span", str(number), class_="ln", aria_hidden="true"),
                el("span", "blamed line: ", class_="sr") if here else None,
                marked,
                Markup("\n"),
                class_="line blamed" if here else "line",
            )
        )
    return el("pre", el("code", rows), class_="code", tabindex="0", aria_label="source code around the culprit")


def _token(kind: Any, piece: str) -> Markup:
    from pygments.token import STANDARD_TYPES

    while kind not in STANDARD_TYPES:
        kind = kind.parent
    name = STANDARD_TYPES[kind]
    return Markup(f'<span class="{name}">{html.escape(piece)}</span>' if name else html.escape(piece))


def _clean(line: str) -> str:
    """A line with its indentation, without characters that are not seen or that turn others around."""
    line = line.rstrip("\r\n").expandtabs(4)[:_LONGEST_LINE]
    return "".join("\ufffd" if unicodedata.category(character) in _UNSEEN else character for character in line)

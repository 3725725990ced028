"""Source code and patches, highlighted."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from typing import Any

from unstall.records.archive import Excerpt
from unstall.records.report import Culprit
from unstall.report.html.markup import Markup, el
from unstall.text.sanitize import literal

_MOST_LINES = 60
_LONGEST_LINE = 200


def excerpt(culprit: Culprit, excerpts: Sequence[Excerpt] = ()) -> Markup | None:
    """The culprit's line among those around it; alone if none of the excerpts holds it, None if it is not known."""
    if not culprit.code:
        return None
    for around in excerpts:
        if around.holds(culprit.file, culprit.line):
            return _figure(around.lines[:_MOST_LINES], around.first, culprit.line)
    return _figure([culprit.code], culprit.line, culprit.line)


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


def _figure(lines: Sequence[str], first: int, blamed: int) -> Markup:
    code = [_clean(line) for line in lines]
    rows = []
    for number, marked in enumerate(highlighted(textwrap.dedent("\n".join(code)), "python"), first):
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
    return literal(line.rstrip("\r\n").expandtabs(4)[:_LONGEST_LINE])

"""Source code and patches, highlighted."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from unstall.records.archive import Excerpt
from unstall.records.report import Culprit
from unstall.report.html.markup import render
from unstall.report.templating import Markup
from unstall.text.sanitize import sanitize_source

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
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import DiffLexer, PythonLexer

    lexer = {"python": PythonLexer, "diff": DiffLexer}[language](stripnl=False, ensurenl=False)
    lines = [_clean(line) for line in code.split("\n")]
    marked = highlight("\n".join(lines), lexer, HtmlFormatter(nowrap=True)).split("\n")
    return [Markup(line) for line in marked[: len(lines)]]  # the formatter ends the last line as well


def _figure(lines: Sequence[str], first: int, blamed: int) -> Markup:
    code = textwrap.dedent("\n".join(map(_clean, lines)))
    return render("source.html", lines=list(enumerate(highlighted(code, "python"), first)), blamed=blamed)


def _clean(line: str) -> str:
    """A line with its indentation, without characters that are not seen or that turn others around."""
    return sanitize_source(line.rstrip("\r\n").expandtabs(4)[:_LONGEST_LINE])

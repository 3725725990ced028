"""Strings of a stranger's program made safe to show: one line, no control characters, not endless.

Names, source lines and paths come from programs that unstall does not control. They may hold
terminal escapes, newlines, direction overrides or lone surrogates, and none of these may reach a
terminal or a pull request's comment.
"""

from __future__ import annotations

import re
import unicodedata

from rich.cells import cell_len, set_cell_size

_LONGEST = 2000
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control characters, direction marks, halves of characters, line ends
_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # control sequences: colours, cursor movement
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # strings: window titles, links
    r"|\x1b[ -/]*[0-~]?"
)


def sanitize_line(text: str) -> str:
    """``text`` on one line: no escapes or invisible characters, single spaces, cut if endless."""
    text = _ESCAPE.sub("", text[:_LONGEST])
    return " ".join("".join(map(_visible, text)).split())


def sanitize_source(line: str) -> str:
    """A line of source code, spaces and tabs unchanged, invisible characters replaced."""
    return "".join(map(_literal, line.rstrip("\r\n")))


def shorten(text: str, cells: int) -> str:
    """At most ``cells`` terminal cells of ``text``, the end replaced by an ellipsis."""
    if cell_len(text) <= cells:
        return text
    return set_cell_size(text, max(cells - 1, 0)).rstrip() + "…"


def shorten_left(text: str, cells: int) -> str:
    """As :func:`shorten`, but the beginning gives way: for paths, whose end tells the most."""
    if cell_len(text) <= cells:
        return text
    tail = text
    while cell_len(tail) > cells - 1:
        tail = tail[1:]
    return "…" + tail.lstrip()


def _visible(character: str) -> str:
    if character.isspace():
        return " "
    category = unicodedata.category(character)
    if category == "Cf":  # zero-width and direction marks: they only mislead here
        return ""
    return "\ufffd" if category in ("Cc", "Cs") else character


def _literal(character: str) -> str:
    return "\ufffd" if character != "\t" and unicodedata.category(character) in _UNSEEN else character

"""GitHub Markdown: escaping, its building blocks, and a page that writes Markdown instead of lines of a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from rich.text import Text

from unstall.report.layout import Page
from unstall.text.sanitize import sanitize_line, sanitize_source

_INLINE = re.compile(r"([\\`*_\[\]|~$])")
_BLOCK = re.compile(r"^(\d*)(#|[-+.)](?=[\s-]|$))")  # headings, list items, rules
_MENTION = re.compile(r"@(?=\w)")
_WIDTH = 100_000  # cells: nothing is wrapped or cut


def escape(text: str) -> str:
    """``text`` as literal characters: no markup, no HTML, and nobody notified by an @ sign."""
    text = sanitize_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _INLINE.sub(r"\\\1", text)
    text = _MENTION.sub("@\u200b", text)
    return _BLOCK.sub(r"\1\\\2", text)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table after an empty line; nothing without rows."""
    if not rows:
        return
    yield ""
    yield f"| {' | '.join(header)} |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield f"| {' | '.join(escape(cell) for cell in row)} |"


def fenced(code: str, language: str) -> Iterator[str]:
    """A code block whose fence is longer than any run of backticks in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", code)), default=0))
    yield from (fence + language, *map(sanitize_source, code.split("\n")), fence)


class MarkdownPage(Page):
    """Takes what a view puts on a page, as Markdown."""

    def __init__(self) -> None:
        super().__init__(_WIDTH)
        self._blocks: list[tuple[Literal["item", "block"], list[str]]] = []

    def as_text(self) -> str:
        """The document: items that follow each other are one list, all else is set apart by empty lines."""
        lines: list[str] = []
        before = ""
        for kind, block in self._blocks:
            if before and (kind, before) != ("item", "item"):
                lines.append("")
            lines += block
            before = kind
        return "\n".join(lines) + "\n"

    def rule(self, title: str) -> None:
        """A heading."""
        self._block(f"### {escape(title)}")

    def line(self, text: str | Text) -> None:
        """A paragraph."""
        self.paragraph(text.plain if isinstance(text, Text) else text)

    def blank(self) -> None:
        """Nothing: the distances follow from what stands beside each other."""

    def paragraph(self, text: str, style: str = "", sign: str = "") -> None:
        """A paragraph, bold where it is on a terminal; ``sign``: put before it."""
        escaped = f"**{escape(text)}**" if "bold" in style else escape(text)
        self._block(f"{sign} {escaped}".strip())

    def field(self, label: str, text: str, style: str = "", most: int = 3) -> None:
        """A list item."""
        self._blocks.append(("item", [f"- {label}: {escape(text)}" if label else f"- {escape(text)}"]))

    def phrases(self, label: str, phrases: Sequence[str]) -> None:
        """A list item."""
        if phrases:
            self.field(label, " · ".join(phrases))

    def bullets(self, label: str, items: Sequence[str], most_lines: int) -> None:
        """A list under its label."""
        if items:
            title = [f"**{label}**", ""] if label else []
            self._block(*title, *(f"- {escape(item)}" for item in items))

    def bar(self, label: str, share: float, figures: str, cells: int, style: str) -> None:
        """A list item with the figures; a bar would say nothing more."""
        self.field(label, " ".join(figures.split()))

    def table(
        self,
        label: str,
        header: Sequence[str],
        rows: Sequence[Sequence[str | Text]],
        styles: Sequence[str] = (),
        align: str = "",
    ) -> None:
        """A table, its label over the first column where that has no name of its own."""
        self.columns((header[0] or label.lower(), *header[1:]), rows, align)

    def columns(self, header: Sequence[str], rows: Sequence[Sequence[str | Text]], align: str) -> None:
        """A table."""
        if rows:
            texts = [[cell.plain if isinstance(cell, Text) else cell for cell in row] for row in rows]
            self._block(*[*table(header, texts)][1:])

    def listing(self, rows: Sequence[Sequence[str | Text]], align: str) -> None:
        """A table without names of its columns."""
        if rows:
            self.columns([""] * len(rows[0]), rows, align)

    def command(self, label: str, why: str, command: str | None) -> None:
        """A list item and a block of code to copy."""
        self.field(label, why)
        if command is not None:
            self._block(*fenced(sanitize_line(command), "sh"))

    def _block(self, *lines: str) -> None:
        self._blocks.append(("block", list(lines)))

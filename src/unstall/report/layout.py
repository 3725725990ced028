"""A page of styled lines for one width: labelled fields, bullets, bars and small tables.

Everything handed in is made safe first (:mod:`unstall.text.sanitize`). Widths are counted in
terminal cells, so that wide characters keep the columns straight.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console, Group, JustifyMethod
from rich.table import Table
from rich.text import Text

from unstall.text.sanitize import sanitize_line, shorten

LABEL_CELLS = 11
_NARROWEST, _WIDEST = 40, 120  # longer lines are hard to read
_HEIGHT = 39  # of a 40-line screen: the prompt takes the last line
_TICKS = "▁▂▃▄▅▆▇█"
_SEPARATOR = " · "
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_ASCII = str.maketrans("×·•…→─µ█▉▊▋▌▍▎▏", "x-*~>-u#####   ")

L = TypeVar("L")


class Page:
    """Lines in the order they are added, none wider than ``width`` cells (commands excepted)."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.lines: list[Text] = []

    @classmethod
    def fitting(cls, width: int, narrowest: int = _NARROWEST, widest: int = _WIDEST) -> Page:
        """A page for a terminal of ``width`` cells: neither too narrow to read, nor lines too long to follow."""
        return cls(min(max(width, narrowest), widest))

    def __rich__(self) -> Group:
        return Group(*self.lines)

    def show(self, console: Console) -> None:
        """Print it, in the colours and the encoding of the console."""
        for line in self.lines:
            console.print(encodable(line, console.encoding), soft_wrap=True, highlight=False)

    def as_text(self) -> str:
        """Without colours."""
        return "\n".join(line.plain.rstrip() for line in self.lines) + "\n"

    def rule(self, title: str) -> None:
        """A titled line across the page."""
        head = shorten(f"── {sanitize_line(title)} ", self.width)
        self.lines.append(Text(head + "─" * (self.width - cell_len(head)), "dim"))

    def line(self, text: str | Text) -> None:
        """A line as it is: safe to show, and no wider than the page, already."""
        self.lines.append(text if isinstance(text, Text) else Text(text))

    def blank(self) -> None:
        """An empty line, unless the last one is empty already."""
        if self.lines and self.lines[-1].plain:
            self.lines.append(Text())

    def paragraph(self, text: str, style: str = "", sign: str = "") -> None:
        """Wrapped text over the full width. ``sign``: what stands for the colour in Markdown."""
        self.lines += [Text(line, style) for line in wrap(sanitize_line(text), self.width)]

    def field(self, label: str, text: str, style: str = "", most: int = 3) -> None:
        """A label in the left column and at most ``most`` lines of wrapped text beside it."""
        self._labelled(label, clip(wrap(sanitize_line(text), self.room), most, self.room), style)

    def phrases(self, label: str, phrases: Sequence[str]) -> None:
        """A label and short phrases, as many a line as fit, none of them torn apart."""
        if phrases:
            self._labelled(label, pack([sanitize_line(phrase) for phrase in phrases], self.room))

    def bullets(self, label: str, items: Sequence[str], most_lines: int) -> None:
        """A label and one bullet an item, each of at most ``most_lines`` lines."""
        lines = []
        for item in items:
            wrapped = clip(wrap(sanitize_line(item), self.room - 2), most_lines, self.room - 2)
            lines += [f"{'•' if i == 0 else ' '} {line}" for i, line in enumerate(wrapped)]
        self._labelled(label, lines)

    def bar(self, label: str, share: float, figures: str, cells: int, style: str) -> None:
        """A label, a bar of ``cells`` for a share of 0..1, and figures after it."""
        head = set_cell_size(shorten(sanitize_line(label), LABEL_CELLS - 1), LABEL_CELLS)
        figures = shorten(figures, self.width - LABEL_CELLS - 1 - cells)
        self.lines.append(Text.assemble(head, (set_cell_size(blocks(share, cells), cells), style), " " + figures))

    def table(
        self,
        label: str,
        header: Sequence[str],
        rows: Sequence[Sequence[str | Text]],
        styles: Sequence[str] = (),
        align: str = "",
    ) -> None:
        """A label and columns, the first of which gives way where there is too little room.

        Args:
            label: in the left column of the page.
            header: names of the columns.
            rows: cells, styled or not.
            styles: of the rows.
            align: ``l`` or ``r`` for each column; all but the first to the right if not given.
        """
        cells = [[_cell(cell) for cell in row] for row in (header, *rows)]
        widths = [max(cell.cell_len for cell in column) for column in zip(*cells)]
        widths[0] = min(widths[0], max(self.room - sum(widths[1:]) - 2 * len(widths[1:]), 8))
        lines = []
        for row, style in zip(cells, ("", *styles, *[""] * len(rows))):
            for cell, width, side in zip(row, widths, align or "l" + "r" * len(header)):
                cell.truncate(width, overflow="ellipsis")
                cell.align("right" if side == "r" else "left", width)
            line = Text("  ").join(row)
            line.rstrip()
            line.truncate(self.room, overflow="ellipsis")
            line.stylize(style)
            lines.append(line)
        self._labelled(label, lines)

    def columns(self, header: Sequence[str], rows: Sequence[Sequence[str | Text]], align: str) -> None:
        """A table over the full width, a line a row. ``align``: ``l`` or ``r`` for each column."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
        for title, side in zip(header, align):
            justify: JustifyMethod = "right" if side == "r" else "left"
            table.add_column(title, justify=justify, no_wrap=True, overflow="ellipsis")
        self._rendered(table, rows)

    def listing(self, rows: Sequence[Sequence[str | Text]], align: str) -> None:
        """Columns without names, the last of which is wrapped. ``align``: ``l`` or ``r`` for each column."""
        table = Table.grid(padding=(0, 2))
        for number, side in enumerate(align, 1):
            table.add_column(justify="right" if side == "r" else "left", no_wrap=number < len(align))
        self._rendered(table, rows)

    def command(self, label: str, why: str, command: str | None) -> None:
        """Why, then the command on a line of its own, never broken, so that it can be copied."""
        self.field(label, why)
        if command is not None:
            indent = " " * LABEL_CELLS
            self.lines.append(Text.assemble(indent, (shorten(command, 3 * self.width), "bold")))

    @property
    def room(self) -> int:
        """Cells beside the label column."""
        return self.width - LABEL_CELLS

    @property
    def height(self) -> int:
        """Rows of a terminal of this width that the page takes."""
        return sum(max(1, -(-cell_len(line.plain) // self.width)) for line in self.lines)

    def _labelled(self, label: str, lines: Sequence[str | Text], style: str = "") -> None:
        for i, line in enumerate(lines):
            head = set_cell_size(label if i == 0 else "", LABEL_CELLS)
            text = line if isinstance(line, Text) else (line, style)
            self.lines.append(Text.assemble((head, "bold cyan"), text))

    def _rendered(self, table: Table, rows: Sequence[Sequence[str | Text]]) -> None:
        for row in rows:
            table.add_row(*map(_cell, row))
        for segments in Console(width=self.width).render_lines(table, pad=False):
            line = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
            line.rstrip()
            self.lines.append(line)


def on_one_screen(width: int, limits: Iterable[L], fill: Callable[[Page, L], None]) -> Page:
    """The first page that is no higher than a screen, or the last one.

    Args:
        width: of the terminal, in cells.
        limits: on what a page shows, from the least strict.
        fill: writes a page within such limits.
    """
    page = Page.fitting(width)
    for limit in limits:
        page = Page.fitting(width)
        fill(page, limit)
        if page.height <= _HEIGHT:
            break
    return page


def sparkline(values: Sequence[float], most: int = 40) -> str:
    """A bar a value, the highest full; of many values the latest ``most``. Empty for fewer than two.

    Heights are from zero, so that they do not lie.
    """
    shown = values[-most:]
    top = max(shown, default=0.0)
    if len(shown) < 2 or top <= 0:
        return ""
    return "".join(_TICKS[round(max(value, 0.0) / top * (len(_TICKS) - 1))] for value in shown)


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` cells, broken at spaces but not before a per cent sign."""
    lines: list[str] = []
    current = ""
    for word in re.split(r" (?!%)", text):
        joined = f"{current} {word}" if current else word
        if cell_len(joined) <= width:
            current = joined
            continue
        if current:
            lines.append(current)
        *full, current = chop_cells(word, width)
        lines += full
    return [*lines, current] if current else lines


def clip(lines: list[str], most: int, width: int) -> list[str]:
    """At most ``most`` of the lines; the last one says by an ellipsis that some are missing."""
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], shorten(lines[most - 1], width - 1).rstrip("…") + "…"]


def pack(phrases: Sequence[str], width: int) -> list[str]:
    """Phrases joined by middle dots into lines of at most ``width`` cells."""
    lines: list[str] = []
    for phrase in phrases:
        phrase = shorten(phrase, width)
        joined = lines[-1] + _SEPARATOR + phrase if lines else phrase
        if lines and cell_len(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(phrase)
    return lines


def blocks(share: float, cells: int) -> str:
    """A bar of ``cells`` times ``share`` (0..1), to an eighth of a cell; an eighth at least."""
    eighths = round(min(max(share, 0.0), 1.0) * cells * 8)
    if share > 0:
        eighths = max(eighths, 1)
    full, eighth = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[eighth] if eighth else "")


def _cell(content: str | Text) -> Text:
    """A cell of a table, safe to show."""
    return content.copy() if isinstance(content, Text) else Text(sanitize_line(content))


def encodable(line: Text, encoding: str) -> Text:
    """The line in characters that an output of that encoding can take, one for one."""
    text = line.plain
    try:
        text.encode(encoding)
        return line
    except UnicodeEncodeError:
        simpler = line.copy()
        simpler.plain = text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
        return simpler

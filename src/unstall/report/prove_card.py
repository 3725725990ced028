"""The verdict of a proof as a card: one SVG that needs nothing else, for a pull request."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from html import escape

from unstall.records.proof import Proof
from unstall.report.layout import wrap
from unstall.report.prove_view import COLOURS, figures, headline
from unstall.text.sanitize import sanitize_line, shorten

_WIDTH, _MARGIN, _LINE = 640, 24, 20
_CHARACTERS = 84  # of a line, in the small type
_COLOURS = {"green": "#1a7f37", "red": "#cf222e", "yellow": "#9a6700"}


def render(proof: Proof, command: Sequence[str]) -> str:
    """The card; strings of the user's program cannot add markup."""
    head, _, rest = headline(proof).partition(": ")
    small = [
        *wrap(sanitize_line(rest), _CHARACTERS)[:3],
        "",
        *(f"{name}: {before} → {after}" for name, before, after in figures(proof)),
        *([f"first difference: {proof.first_difference}"] if proof.first_difference else []),
        f"{proof.changes} · {shlex.join(command)}",
    ]
    lines = [
        f'<text x="{_MARGIN}" y="{72 + _LINE * number}" class="s">{escape(text)}</text>'
        for number, text in enumerate(shorten(sanitize_line(text), _CHARACTERS) for text in small)
    ]
    height = 72 + _LINE * len(small) + 8
    colour = _COLOURS[COLOURS[proof.verdict]]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" role="img" '
            f'aria-label="unstall prove: {escape(head)}">',
            "<style>.s{font:13px ui-monospace,monospace;fill:#57606a}.h{font:bold 22px sans-serif}</style>",
            f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="#fff" stroke="#d0d7de"/>',
            f'<rect width="6" height="{height}" fill="{colour}"/>',
            f'<text x="{_MARGIN}" y="42" class="h" fill="{colour}">{escape(head)}</text>',
            f'<text x="{_WIDTH - _MARGIN}" y="42" class="s" text-anchor="end">unstall prove</text>',
            *lines,
            "</svg>",
            "",
        ]
    )

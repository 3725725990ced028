"""What every view has: one module a verb, ``<verb>_view``, that shows its answer on a terminal and in Markdown.

Reports of programs (``run``, ``simplify``, ``optimize``, ``trace``) can also be had as a page for a browser, which is
the same for all of them: :mod:`unstall.report.html`.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from unstall.report.layout import Page

A = TypeVar("A", contravariant=True)


class View(Protocol[A]):
    """A module of this package whose name ends in ``_view``; ``A`` is the type of the answer that it shows."""

    def page(self, answer: A, width: int, /) -> Page:
        """The answer as styled lines for a terminal of ``width`` cells."""

    def markdown(self, answer: A, /) -> str:
        """The answer for a comment on a pull request; strings of the user's program cannot add markup."""

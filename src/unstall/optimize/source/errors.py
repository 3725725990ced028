"""Why a change is not made. All messages are half a line, for a person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class NotApplicable(Exception):
    """A change cannot be made here, or is not worth it; the message says why."""


class AnalysisRefused(NotApplicable):
    """As far as the source shows, the change cannot be made there, or might alter what the program does.

    The message says on which line; :func:`located` puts the file before it.
    """


class NameTaken(NotApplicable):
    """The file uses a name for something else that the change needs; the message says which."""


class SourceError(NotApplicable):
    """A file cannot be read, or what was written into it is not valid Python; the message says which and why."""


@contextmanager
def located(place: str) -> Iterator[None]:
    """Put a place, the name of a file say, before the reasons of what is refused within."""
    try:
        yield
    except (AnalysisRefused, NameTaken) as reason:
        raise type(reason)(f"{place}: {reason}") from reason

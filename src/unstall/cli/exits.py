"""The exit codes of every verb, in one table. ``unstall run`` ends as its program did."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import IntEnum

import click

from unstall.runs.errors import Refused
from unstall.text.sanitize import sanitize_source


class Exit(IntEnum):
    """An exit code, and what it means."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Exit:
        """A member from its row of the table."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    OK = 0, "done; `gate`: no regression; `prove`: proven"
    FAILED = 1, "tried and failed; `gate`: a proven regression; `export`: at least one target failed"
    REFUSED = 2, "bad input, or an output file cannot be written; `gate`: cannot tell"
    DIFFERENT = 10, "`prove`: different, it does not do the same"
    NOT_FASTER = 11, "`prove`: not faster"
    INCONCLUSIVE = 12, "`prove`: inconclusive, the runs do not decide it"
    REFUSED_CHANGE = 13, "`prove`: refused, it changes what is measured, or there is nothing to judge"
    INTERRUPTED = 130, "ended by Ctrl-C or SIGTERM"


@contextlib.contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Around imports of libraries that only an extra of unstall installs."""
    try:
        yield
    except ImportError as error:
        raise Refused(f"{error.name} is not installed: pip install 'unstall[{extra}]'") from error


def warn(message: str) -> None:
    """Print a problem that does not end the verb on stderr, in a line or several. It may quote a stranger's file."""
    click.echo("\n".join(map(sanitize_source, f"unstall: {message}".splitlines())), err=True)

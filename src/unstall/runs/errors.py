"""How a command ends without an answer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class Refused(Exception):
    """What was asked for cannot be done; the message is one line that says why and what to do."""


class Failed(Exception):
    """It was tried, and failed; the message is one line."""


class Interrupted(Exception):
    """A person, or the system, ended the command before it had an answer."""


@contextlib.contextmanager
def refusing(*kinds: type[Exception]) -> Iterator[None]:
    """Errors of these kinds, whose message is for the user already, as :class:`Refused`."""
    try:
        yield
    except kinds as error:
        raise Refused(str(error.args[0]) if error.args else type(error).__name__) from error

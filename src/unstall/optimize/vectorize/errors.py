"""Why a loop stays as it is."""

from __future__ import annotations


class NotVectorizable(Exception):
    """The loop does something that has no equal in array operations; the message says what, and on which line."""

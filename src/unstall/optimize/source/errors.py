"""Why a change is not made. All messages are half a line, for a person."""

from __future__ import annotations


class NotApplicable(Exception):
    """A change cannot be made here, or is not worth it; the message says why."""


class AnalysisRefused(NotApplicable):
    """As far as the source shows, the change might alter what the program does; the message says where."""


class SourceError(NotApplicable):
    """A file cannot be read, or what was written into it is not valid Python; the message says which and why."""

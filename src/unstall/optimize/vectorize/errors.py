"""Why a loop stays as it is."""

from __future__ import annotations

from unstall.optimize.source.errors import AnalysisRefused


class NotVectorizable(AnalysisRefused):
    """The loop does something that has no equal in array operations; the message says what, and on which line."""

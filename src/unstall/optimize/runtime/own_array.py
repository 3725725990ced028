"""What is taken of an array that lies in a file, as an array in memory."""

from __future__ import annotations

from typing import Any

import numpy


def _own_array(part: Any) -> Any:
    """The same, of its own: it can be written, and keeps no file open."""
    return numpy.array(part) if isinstance(part, numpy.ndarray) else part.copy()

"""The modules of bench/: scripts beside the package, which import each other by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "bench"


@contextmanager
def importable() -> Iterator[None]:
    """For so long they can be imported."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield
    finally:
        sys.path.remove(str(FOLDER))

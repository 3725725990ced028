"""NVTX ranges around every seam and span, for Nsight Systems. Runs in the user's process, only with ``--nvtx``."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from unstall.records.vocabulary import label

if TYPE_CHECKING:
    from collections.abc import Callable


def ranges() -> Callable[[Any, str], Any]:
    """A maker of functions that open a range named after the seam; ImportError says what to install."""
    try:
        import nvtx
    except ImportError:
        raise ImportError('no nvtx package in the program\'s Python: pip install "unstall[nvtx]"') from None

    def make(func: Any, name: str) -> Any:
        title = f"unstall {label(name)}"

        @functools.wraps(func)
        def in_range(*args: Any, **kwargs: Any) -> Any:
            nvtx.push_range(title)
            try:
                return func(*args, **kwargs)
            finally:
                nvtx.pop_range()

        return in_range

    return make

"""Wait for a GPU where a time is taken: the host may be a thousand kernels ahead of it. Runs in the user's process."""

from __future__ import annotations

import sys
from typing import Any


def wait() -> None:
    """Until all that the program has submitted is done; at once where it uses no GPU, or records a CUDA graph."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized() and not cuda.is_current_stream_capturing():
        cuda.synchronize()

"""glibc's allocator, told to keep the memory that a program frees instead of giving it back to the kernel.

See mallopt(3); the numbers are those of glibc's malloc.h.
"""

from __future__ import annotations

from typing import Any

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4


def can_keep() -> bool:
    """Whether the C library of this process has ``mallopt``: glibc does, musl does not."""
    return hasattr(_libc(), "mallopt")


def keep_freed() -> None:
    """From now on no large block has a mapping of its own, and the heap's end stays where it is."""
    mallopt = _libc().mallopt
    mallopt(_MMAP_MAX, 0)
    mallopt(_TRIM_THRESHOLD, -1)


def _libc() -> Any:
    import ctypes  # not before it is needed: the program may never import it

    return ctypes.CDLL(None)

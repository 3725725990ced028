"""glibc's allocator: what it keeps of what the program has freed, and how it is told to keep all of it.

See mallinfo2(3) and mallopt(3); the numbers are those of glibc's malloc.h.
"""

from __future__ import annotations

from typing import Any

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_MALLINFO2 = (
    "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
)  # fmt: skip


def can_keep() -> bool:
    """Whether the C library of this process has ``mallopt``: glibc does, musl does not."""
    return hasattr(_libc(), "mallopt")


def keep_freed() -> None:
    """From now on no large block has a mapping of its own, and the heap's end stays where it is."""
    mallopt = _libc().mallopt
    mallopt(_MMAP_MAX, 0)
    mallopt(_TRIM_THRESHOLD, -1)


def free_bytes() -> int | None:
    """What the program has freed and the allocator holds; None where the C library does not tell, as old glibc."""
    libc = _libc()
    if not hasattr(libc, "mallinfo2"):
        return None
    import ctypes

    fields = [(name, ctypes.c_size_t) for name in _MALLINFO2]
    libc.mallinfo2.restype = type("mallinfo2", (ctypes.Structure,), {"_fields_": fields})
    return int(libc.mallinfo2().fordblks)


def _libc() -> Any:
    import ctypes  # not before it is needed: the program may never import it

    return ctypes.CDLL(None)

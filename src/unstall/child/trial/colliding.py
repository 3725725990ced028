"""Let all checksums that the program itself asks for be the same, as those of two different things can be.

What is kept under ``zlib.crc32(text)`` or ``hash(row)`` is then found for every other text or row, too. ``hash`` stays
what it is within ``__hash__``: there Python itself looks at whether two things are equal.
"""

from __future__ import annotations

import binascii
import builtins
import functools
import sys
import zlib
from typing import TYPE_CHECKING, Any

from unstall.child.user_files import is_program_file

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKSUMS: dict[str, list[Any]] = {"crc32": [zlib, binascii], "adler32": [zlib], "hash": [builtins]}
"""Name → the modules that have such a function."""


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """Nothing that is imported later is looked at."""
    for name, modules in CHECKSUMS.items():
        for module in modules:
            setattr(module, name, _the_same(getattr(module, name)))
    return []


def _the_same(checksum: Callable[..., int]) -> Callable[..., int]:
    """One that gives 0 to the program, and to everybody else what it is."""

    @functools.wraps(checksum)
    def colliding(*args: Any) -> int:
        caller = sys._getframe(1).f_code
        if caller.co_name == "__hash__" or not is_program_file(caller.co_filename):
            return checksum(*args)
        return 0

    return colliding

"""What glibc's allocator holds of what a program has freed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from unstall.child import allocator

PROGRAM = """
from unstall.child import allocator

kept = [bytes(50_000 + number) for number in range(2_000)]  # pieces of the heap, each below the size that is mapped
before = allocator.free_bytes()
del kept[::2]  # every other one: the heap's end stays where it is
print(allocator.free_bytes() - before)
"""


@pytest.mark.skipif(allocator.free_bytes() is None, reason="this C library does not tell what it holds")
def test_what_is_freed_between_pieces_in_use_is_held():
    printed = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert 45e6 < int(printed) < 60e6

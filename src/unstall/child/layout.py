"""The layout of a recording: its header page, its records, their flags. The Python twin of ``native/recorder.h``.

All that writes or reads a recording takes formats and offsets from here. Standard library only, and importable where
nothing else of unstall is. Numbers are little-endian.
"""

from __future__ import annotations

import struct

MAGIC = b"UNSTALL1"
VERSION = 1
HEADER_BYTES = 4096
TAIL_RECORDS = 4096
"""The newest records, in shared memory behind the header; older ones follow them in the file."""
TICK_KINDS = 9
REFETCHES = 64
"""The newest looks at what it costs to fetch anew what a step has pushed out of the caches."""
ROOT_GROUPS = 6
FIRST_CALLS = 64
"""Calls of each seam that the watcher is called for, unasked."""
SERVING_CALLS = 4
"""Calls of models from which on a thread is heard where the main one makes none."""
TICK_OPTIMIZER, TICK_FORWARD = 2, 4

Fields = tuple[tuple[str, str], ...]
"""Name and format of each field, as :mod:`struct` writes it, in the order of the file."""

HEADER_FIELDS: Fields = (
    ("magic", "8s"),
    ("version", "I"),
    ("record_bytes", "I"),
    ("opened", "Q"),  # CLOCK_MONOTONIC, ns
    ("pid", "I"),
    ("parent", "I"),
    ("count", "Q"),
    ("dropped", "Q"),
    ("control", "I"),
    ("tail_records", "I"),
    ("ticks", f"{TICK_KINDS}Q"),
    ("flushed", "Q"),  # records after the tail; count - flushed of the tail's are valid
    ("refetches", "I"),
    ("refetch_ns", f"{REFETCHES}I"),  # of a line of memory, a step after it was last touched; the newest ones
)
RECORD_FIELDS: Fields = (
    ("start", "Q"),  # CLOCK_MONOTONIC, ns
    ("dur", "Q"),  # ns
    ("self", "Q"),  # ns, what other spans inside it took left out
    ("cpu", "I"),  # thread CPU time, units of 100 ns
    ("delay", "I"),  # runnable but not running, units of 100 ns
    ("arg", "Q"),  # bytes moved, the address of the call's first argument, or what `after` gave
    ("thread", "I"),
    ("name", "H"),
    ("depth", "B"),
    ("flags", "B"),
)

ERROR, CPU_KNOWN, DELAY_KNOWN, MAIN, MODULE, NETWORK, NOGRAD = 1, 2, 4, 8, 16, 32, 64
"""Flags of a record; see ``recorder.h`` for what each means."""


def _struct(fields: Fields) -> struct.Struct:
    return struct.Struct("<" + "".join(code for _, code in fields))


HEADER, RECORD = _struct(HEADER_FIELDS), _struct(RECORD_FIELDS)
RECORD_BYTES = RECORD.size
MAPPED_BYTES = HEADER_BYTES + TAIL_RECORDS * RECORD_BYTES


def _offsets(fields: Fields) -> dict[str, int]:
    offsets, at = {}, 0
    for name, code in fields:
        offsets[name] = at
        at += struct.calcsize("<" + code)
    return offsets


HEADER_AT = _offsets(HEADER_FIELDS)
"""Byte offset of each field of the header."""


def tick_at(kind: int) -> int:
    """Byte offset of the counter (u64) of a kind of tick."""
    return HEADER_AT["ticks"] + 8 * kind

"""The scanner in C as an EventScanner."""

from __future__ import annotations

import ctypes
import threading
import weakref
from typing import Any

import numpy as np

from unstall.trace.readers.rows import COLUMNS, FIELDS, SAME_FIELDS, ColumnSpec, Counts, Texts, route

_PADDING = bytes(32)
_OK, _MORE, _NEW_ROUTE = 0, 1, 2
_MALFORMED, _NO_OBJECT, _BEYOND = range(3)
_ENTRY_BYTES = 24


class _Column(ctypes.Structure):
    """Column of ``native/scan.h``."""

    _fields_ = [
        *((name, ctypes.c_uint8) for name in ("table", "how", "width", "scale", "texts", "field_count")),
        ("fields", ctypes.c_uint8 * 6),
        ("absent", ctypes.c_int64),
        ("data", ctypes.c_void_p),
    ]

    @classmethod
    def of(cls, column: ColumnSpec) -> _Column:
        fields = [FIELDS[field] for field in column.fields]
        width = np.dtype(column.dtype).itemsize
        parts = (column.table, column.how, width, column.scale, column.texts, len(fields))
        return cls(*parts, (ctypes.c_uint8 * 6)(*fields), column.absent, None)


class NativeScanner:
    """An EventScanner, see :mod:`unstall.trace.readers.rows`."""

    def __init__(self, functions: Any) -> None:
        self._c = functions
        self._events = functions.scanner_new()
        if not self._events:
            raise MemoryError
        weakref.finalize(self, functions.scanner_free, self._events)
        self._buffer = bytearray(_PADDING)
        """What has not been read yet, and room behind it."""
        self._size = 0
        self._enough = 0
        """Bytes worth another look: an event that is not whole is not parsed again for every few more."""
        self._ended = self._truncated = False
        self._busy = threading.Lock()
        numbers = FIELDS | {second: FIELDS[first] for second, first in SAME_FIELDS.items()}
        added = [self._add_key(field, number) for field, number in numbers.items()]
        added += [functions.scanner_add_column(self._events, ctypes.byref(_Column.of(each))) for each in COLUMNS]
        if not all(added):
            raise ValueError("these columns are too much for the scanner")

    def _add_key(self, field: str, number: int) -> bool:
        in_args = field.startswith("args.")
        name = field.removeprefix("args.").encode()
        return bool(self._c.scanner_add_key(self._events, in_args, name, len(name), number))

    def feed(self, data: bytes, final: bool = False) -> bytes | None:
        """See EventScanner."""
        if not self._busy.acquire(blocking=False):
            raise ValueError("in use by another thread")
        try:
            if self._ended:
                raise ValueError("the events have ended")
            return self._feed(data, final)
        finally:
            self._busy.release()

    def _feed(self, data: bytes, final: bool) -> bytes | None:
        self._append(data)
        if not final and self._size < self._enough:
            return None
        done = self._scan()
        with memoryview(self._buffer) as buffer:
            rest = buffer[done : self._size]
            if self._ended:
                return bytes(rest)
            buffer[: len(rest)] = rest
        self._size -= done
        self._enough = 2 * self._size
        self._truncated = final
        return None

    def _append(self, data: bytes) -> None:
        end = self._size + len(data)
        self._buffer.extend(bytes(max(0, end + len(_PADDING) - len(self._buffer))))
        with memoryview(self._buffer) as buffer:  # a bytearray would copy the data once more
            buffer[self._size : end] = data
            buffer[end : end + len(_PADDING)] = _PADDING
        self._size = end

    def _scan(self) -> int:
        """Read all that can be read; returns how many bytes that are."""
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._buffer))
        done, read = 0, ctypes.c_size_t()
        while True:
            status = self._c.scanner_scan(self._events, start + done, self._size - done, ctypes.byref(read))
            done += read.value
            if status == _NEW_ROUTE:
                self._add_route()
            elif status in (_OK, _MORE):
                self._ended = status == _OK
                return done
            else:
                raise MemoryError

    def _add_route(self) -> None:
        if not self._c.scanner_add_route(self._events, *route(self.strings(Texts.ROUTES)[-1])):
            raise MemoryError

    def take(self, column: int) -> bytes:
        """See EventScanner."""
        self._ended = True
        rows = ctypes.c_size_t()
        data = self._c.scanner_column(self._events, column, ctypes.byref(rows))
        result = ctypes.string_at(data, rows.value * np.dtype(COLUMNS[column].dtype).itemsize) if data else b""
        self._c.scanner_drop_column(self._events, column)
        return result

    def strings(self, which: Texts) -> list[bytes]:
        """See EventScanner."""
        characters, entries = ctypes.c_void_p(), ctypes.c_void_p()
        outputs = ctypes.byref(characters), ctypes.byref(entries)
        count = self._c.scanner_strings(self._events, which, *outputs)
        if not count:
            return []
        table = np.frombuffer(ctypes.string_at(entries, count * _ENTRY_BYTES), np.uint64).reshape(count, 3)
        offsets, sizes = table[:, 1].tolist(), table[:, 2].tolist()
        text = ctypes.string_at(characters, offsets[-1] + sizes[-1])
        return [text[offset : offset + size] for offset, size in zip(offsets, sizes)]

    def counts(self) -> Counts:
        """See EventScanner."""
        malformed, no_object, beyond = (
            self._c.scanner_count(self._events, which) for which in (_MALFORMED, _NO_OBJECT, _BEYOND)
        )
        routes = range(len(self.strings(Texts.ROUTES)))
        events = [self._c.scanner_events(self._events, number) for number in routes]
        return Counts(malformed, no_object, beyond, self._truncated, events)

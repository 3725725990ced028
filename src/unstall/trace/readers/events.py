"""The scanner in Python, for machines without a C compiler: the rows of the one in C, many times slower.

It keeps the text of all events, and reads them when the file has ended.
"""

from __future__ import annotations

import decimal
import json
import re
from array import array
from decimal import Decimal
from typing import Any

import numpy as np

from unstall.trace.readers.document import BAD, INCOMPLETE, next_value
from unstall.trace.readers.rows import (
    COLUMNS,
    FIELDS,
    SAME_FIELDS,
    ColumnSpec,
    Counts,
    How,
    Route,
    Tables,
    Texts,
    route,
)
from unstall.trace.timeline import NONE

MAX_TIME = 1 << 61

_GAP = re.compile(r"[ \t\r\n,]*")
_AFTER = frozenset(",] \t\r\n")
_NEXT_EVENT = re.compile(r"\}[ \t\r\n]*,[ \t\r\n]*\{")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_EVENT_FIELDS = frozenset(field for field in FIELDS if not field.startswith("args."))

_EXACT = decimal.Context(60, decimal.ROUND_HALF_UP, decimal.MIN_EMIN, decimal.MAX_EMAX, traps=[])
_DECODER = json.JSONDecoder(
    parse_float=_EXACT.create_decimal,
    parse_int=lambda text: int(text) if len(text) < 40 else _EXACT.create_decimal(text),
    strict=False,
)


class PythonEventScanner:
    """An EventScanner, see :mod:`unstall.trace.readers.rows`."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._ended = self._truncated = False
        self._malformed = self._no_object = self._beyond = 0
        self._columns = [array(np.dtype(column.dtype).char) for column in COLUMNS]
        self._of_table = {
            table: [(column, values) for column, values in zip(COLUMNS, self._columns) if column.table == table]
            for table in Tables
        }
        self._strings: dict[Texts, dict[str, int]] = {which: {} for which in Texts}
        self._routes: list[Route] = []
        self._events: list[int] = []

    def feed(self, data: bytes, final: bool = False) -> bytes | None:
        """See EventScanner; None until the final piece."""
        if self._ended:
            raise ValueError("the events have ended")
        self._data += data
        if not final:
            return None
        text = self._data.decode("utf-8", "replace")
        self._data.clear()
        self._ended = True
        end = self._read(text)
        self._truncated = end is None
        return None if end is None else text[end:].encode()

    def take(self, column: int) -> bytes:
        """See EventScanner."""
        self._ended = True
        values = self._columns[column]
        result = values.tobytes()
        del values[:]
        return result

    def strings(self, which: Texts) -> list[bytes]:
        """See EventScanner."""
        return [text.encode() for text in self._strings[which]]

    def counts(self) -> Counts:
        """See EventScanner."""
        return Counts(self._malformed, self._no_object, self._beyond, self._truncated, list(self._events))

    def _read(self, text: str) -> int | None:
        """Take in the elements; returns where the array ends, None if the text ends before."""
        at = 0
        while True:
            at = _GAP.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
            if at == len(text):
                return None
            if text[at] == "]":
                return at + 1
            end = self._element(text, at)
            if end == INCOMPLETE:
                return None
            if end == BAD:
                self._malformed += 1
                following = _NEXT_EVENT.search(text, at + 1)
                end = following.end() - 1 if following else len(text)
            at = end

    def _element(self, text: str, at: int) -> int:
        """Take in the element at this place; returns where it ends, INCOMPLETE or BAD."""
        value, end = next_value(text, at, _DECODER)
        if end in (INCOMPLETE, BAD):
            return end
        if isinstance(value, dict):
            self._add(value)
        elif end == len(text):
            return INCOMPLETE
        elif text[end] not in _AFTER:
            return BAD
        else:
            self._no_object += 1
        return end

    # ---- events to rows

    def _add(self, event: dict[str, Any]) -> None:
        fields = {key: value for key, value in event.items() if key in _EVENT_FIELDS}
        if isinstance(arguments := event.get("args"), dict):
            args = ((f"args.{key}", value) for key, value in arguments.items())
            fields.update((SAME_FIELDS.get(field, field), value) for field, value in args)
        number = self._list(Texts.ROUTES, fields, ("ph", "cat"))
        if number == len(self._routes):
            self._routes.append(route(self.strings(Texts.ROUTES)[-1]))
            self._events.append(0)
        self._events[number] += 1
        where = self._routes[number]
        table = where.with_stream if "args.device" in fields and "args.stream" in fields else where.table
        if table == NONE:
            return
        for column, values in self._of_table[Tables(table)]:
            values.append(where.kind if column.how == How.KIND else self._value(column, fields))

    def _value(self, column: ColumnSpec, fields: dict[str, Any]) -> int:
        wanted, first = column.fields, fields.get(column.fields[0])
        if column.how in (How.INTEGER, How.POSITIVE):
            number = self._number(column, first)
            return number if column.how == How.INTEGER else number > 0
        if column.how == How.TEXT:
            return self._intern(column.texts, json.dumps(first)[1:-1]) if isinstance(first, str) and first else NONE
        if column.how != How.LIST and wanted[0] not in fields:
            return NONE
        name = fields.get("name")
        if column.how == How.INPUTS and not (isinstance(name, str) and "conv" in name):
            wanted = wanted[:-1]
        return self._list(column.texts, fields, wanted)

    def _intern(self, which: Texts, text: str) -> int:
        known = self._strings[which]
        return known.setdefault(text, len(known))

    def _list(self, which: Texts, fields: dict[str, Any], wanted: tuple[str, ...]) -> int:
        return self._intern(which, json.dumps([fields.get(field) for field in wanted], default=float))

    def _number(self, column: ColumnSpec, value: Any) -> int:
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            value = _EXACT.create_decimal(value)
        if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
            return column.absent
        number = _EXACT.scaleb(value, column.scale)
        rounded = number.to_integral_value(decimal.ROUND_HALF_UP)
        if rounded != number and not column.scale:
            return column.absent
        if rounded.copy_abs() > limit(column):  # abs() is of a context that has no number of a million digits
            self._beyond += 1
            return column.absent
        return int(rounded)


def limit(column: ColumnSpec) -> int:
    """The largest integer of a column: of times half of what fits, so that they can be added."""
    return MAX_TIME if column.scale else (1 << (31 if column.dtype is np.int32 else 63)) - 1

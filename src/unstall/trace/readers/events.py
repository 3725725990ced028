"""The scanner in Python, for machines without a C compiler: equal to ``native/events.c``, and many times slower."""

from __future__ import annotations

import codecs
import json
import re
import struct
from array import array
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from unstall.trace.readers.rows import (
    COLUMNS,
    COUNTS,
    DEVICE_ROW,
    SKIPPED_ROW,
    TRUNCATED,
    UNKNOWN_ROW,
    WAIT_ROW,
    Tables,
    Texts,
)
from unstall.trace.readers.tokens import BAD, INCOMPLETE, check

MAX_TIME = 1 << 61
MAX_INT = (1 << 63) - 1
MAX_DEVICE = (1 << 31) - 1

_GAP = re.compile(r"[ \t\r\n,]*")
_RESYNC = re.compile(r"\}[ \t\r\n]*(?:,[ \t\r\n]*(?:\{|\Z)|\Z)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_OTHER_PHASES = frozenset("iIsftRcCbenNODPv(),=")
_COLLECTIVE_ARGS = (
    "Collective name",
    "Process Group Name",
    "Group size",
    "dtype",
    "In msg nelems",
    "Out msg nelems",
)
_SAME: dict[Any, str] = {"external id": "External id", "labels": "name"}
"""Arguments with two names."""


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond Decimal's own limits
        return Decimal("NaN")


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) < 40 else _decimal(text)


_DECODER = json.JSONDecoder(parse_float=_decimal, parse_int=_integer, strict=False)


class PythonEventScanner:
    """An EventScanner, see :mod:`unstall.trace.readers.rows`."""

    def __init__(self, categories: list[tuple[str, int]]) -> None:
        self._categories = dict(categories)
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._text = ""
        self._enough = 0
        """Characters worth another device: an event that is not whole is not parsed again for every few more."""
        self._resyncing = False
        self._ended = False
        self._counts = dict.fromkeys(COUNTS, 0)
        self._columns = {t: [array(np.dtype(c).char) for c in columns.values()] for t, columns in COLUMNS.items()}
        self._strings: dict[Texts, dict[Any, int]] = {which: {} for which in Texts}

    def feed(self, data: bytes, final: bool = False) -> bytes | None:
        """See EventScanner."""
        if self._ended:
            raise ValueError("the events have ended")
        self._text += self._decode(data, final)
        if not final and len(self._text) < self._enough:
            return None
        at = self._read()
        if self._ended:
            return self._text[at:].encode()
        self._text = self._text[at:]
        self._enough = 2 * len(self._text)
        if final:
            self._counts[TRUNCATED] = 1
        return None

    def take(self, table: int, column: int) -> bytes:
        """See EventScanner."""
        self._ended = True
        columns = self._columns[Tables(table)]
        result = columns[column].tobytes()
        columns[column] = array(columns[column].typecode)
        return result

    def strings(self, which: int) -> list[bytes]:
        """See EventScanner."""
        keys = self._strings[Texts(which)]
        return list(keys) if which == Texts.LANES else [_SURROGATE.sub("\ufffd", key).encode() for key in keys]

    def counts(self) -> list[int]:
        """See EventScanner."""
        return list(self._counts.values())

    def _read(self) -> int:
        """Take in all complete elements; returns where the rest of the text begins."""
        text, at = self._text, 0
        while True:
            if self._resyncing:
                found = _RESYNC.search(text, at)
                if not found or not found[0].endswith("{"):
                    return found.start() if found else len(text)
                at = found.end() - 1
                self._resyncing = False
            at = _GAP.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
            if at == len(text):
                return at
            if text[at] == "]":
                self._ended = True
                return at + 1
            end = self._element(text, at)
            if end == INCOMPLETE:
                return at
            if end == BAD:
                self._counts["events that are not valid JSON"] += 1
                self._resyncing = True
            at = at + 1 if end == BAD else end

    def _element(self, text: str, at: int) -> int:
        """Take in the element at this place; returns where it ends, INCOMPLETE or BAD."""
        if text[at] != "{":
            end = check(text, at)
            self._counts["entries without an event"] += end >= 0
            return end
        try:
            event, end = _DECODER.raw_decode(text, at)
        except RecursionError:
            return BAD
        except ValueError:
            return min(check(text, at), INCOMPLETE)
        self._add(event)
        return end

    # ---- events to rows

    def _add(self, event: dict[str, Any]) -> None:
        self._counts["events"] += 1
        phase = event.get("ph")
        given: Any = event.get("args")
        args = {str(_SAME.get(key, key)): value for key, value in given.items()} if isinstance(given, dict) else {}
        if phase == "M":
            self._add_label(event, args)
        elif phase in ("X", "B", "E"):
            time = self._number(event.get("ts"), 3, MAX_TIME)
            if time is None:
                self._counts["events without a time"] += 1
            elif phase == "X":
                self._add_complete(event, args, time)
            elif phase == "B":
                self._add_begin(event, args, time)
            else:
                self._push(Tables.END, time, self._lane(event), len(self._columns[Tables.HOST][0]))
        elif not isinstance(phase, str) or phase not in _OTHER_PHASES:
            self._counts["events of an unknown phase"] += 1

    def _add_label(self, event: dict[str, Any], args: dict[str, Any]) -> None:
        if isinstance(args.get("name"), str):
            what, lane = self._intern(Texts.TEXTS, _text(event.get("name"))), self._lane(event)
            self._push(Tables.LABEL, what, lane, self._intern(Texts.TEXTS, args["name"]))

    def _add_complete(self, event: dict[str, Any], args: dict[str, Any], time: int) -> None:
        code = self._category(event)
        if code == SKIPPED_ROW:
            return
        duration = self._number(event.get("dur"), 3, MAX_TIME)
        if duration is None:
            self._counts["events without a duration (read as 0)"] += 1
        elif duration < 0:
            self._counts["negative durations (read as 0)"] += 1
        duration = max(duration or 0, 0)
        if code == UNKNOWN_ROW:
            code = DEVICE_ROW if "device" in args and "stream" in args else 0
        if code & 0xF0 == DEVICE_ROW:
            self._add_device(event, args, time, duration, code & 0x0F)
        elif code & 0xF0 == WAIT_ROW:
            self._add_wait(event, args, time, duration)
        else:
            self._add_host(event, args, time, duration, code & 0x0F)

    def _add_begin(self, event: dict[str, Any], args: dict[str, Any], time: int) -> None:
        code = self._category(event)
        if code != SKIPPED_ROW:
            self._add_host(event, args, time, -1, 0 if code & 0xF0 else code & 0x0F)

    def _add_host(self, event: dict[str, Any], args: dict[str, Any], time: int, duration: int, kind: int) -> None:
        stack = args.get("Call stack")
        self._push(
            Tables.HOST,
            time,
            duration,
            self._intern(Texts.NAMES, _text(event.get("name"))),
            self._lane(event),
            kind,
            self._whole(args.get("correlation")),
            self._whole(args.get("External id")),
            self._whole(args.get("Sequence number")),
            self._inputs(event, args),
            self._intern(Texts.STACKS, stack) if isinstance(stack, str) and stack else -1,
            self._collective(args),
        )

    def _add_device(self, event: dict[str, Any], args: dict[str, Any], time: int, duration: int, kind: int) -> None:
        self._push(
            Tables.DEVICE,
            time,
            duration,
            self._intern(Texts.NAMES, _text(event.get("name"))),
            self._device(event, args),
            self._stream(event, args),
            kind,
            self._whole(args.get("correlation")),
            self._whole(args.get("External id")),
            self._whole(args.get("bytes")),
            self._whole(args.get("graph node id")) > 0,
            self._collective(args),
        )

    def _add_wait(self, event: dict[str, Any], args: dict[str, Any], time: int, duration: int) -> None:
        self._push(
            Tables.WAIT,
            time,
            duration,
            self._intern(Texts.NAMES, _text(event.get("name"))),
            self._device(event, args),
            self._stream(event, args),
            self._whole(args.get("correlation")),
            self._whole(args.get("wait_on_stream")),
            self._whole(args.get("wait_on_cuda_event_record_corr_id")),
        )

    def _push(self, table: Tables, *values: int) -> None:
        for column, value in zip(self._columns[table], values):
            column.append(value)

    # ---- fields

    def _intern(self, which: Texts, text: Any) -> int:
        known = self._strings[which]
        return known.setdefault(text, len(known))

    def _category(self, event: dict[str, Any]) -> int:
        name = _text(event.get("cat"))
        self._intern(Texts.CATEGORIES, name)
        return self._categories.get(name.lower() if name.isascii() else name, UNKNOWN_ROW)

    def _lane(self, event: dict[str, Any]) -> int:
        return self._intern(Texts.LANES, self._lane_part(event.get("pid")) + self._lane_part(event.get("tid")))

    def _lane_part(self, value: Any) -> bytes:
        number = self._number(value, 0, MAX_INT)
        if number is not None:
            return struct.pack("<cq", b"i", number)
        if isinstance(value, str):
            return struct.pack("<cq", b"t", self._intern(Texts.TEXTS, value))
        return struct.pack("<cq", b" ", 0)

    def _whole(self, value: Any) -> int:
        number = self._number(value, 0, MAX_INT)
        return -1 if number is None else number

    def _number(self, value: Any, scale: int, limit: int) -> int | None:
        """The value times 10^scale as an integer: rounded if there is a scale, else only if it is whole."""
        if isinstance(value, str):
            if len(value) > 63 or not _NUMBER.fullmatch(value):
                return None
            value = _decimal(value)
        if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
            return None
        try:
            number = _scaled(Decimal(value), scale)
        except OverflowError:
            number = limit + 1
        if number is None:
            return None
        if abs(number) > limit:
            self._counts["integers beyond 64 bits"] += 1
            return None
        return number

    def _device(self, event: dict[str, Any], args: dict[str, Any]) -> int:
        for value in (args.get("device"), event.get("pid")):
            number = self._number(value, 0, MAX_DEVICE)
            if number is not None:
                return number
        return -1

    def _stream(self, event: dict[str, Any], args: dict[str, Any]) -> int:
        for value in (args.get("stream"), event.get("tid")):
            number = self._number(value, 0, MAX_INT)
            if number is not None:
                return number
        digits = re.search(r"[0-9]{1,18}\Z", _text(event.get("tid")))
        return int(digits[0]) if digits else -1

    def _inputs(self, event: dict[str, Any], args: dict[str, Any]) -> int:
        if "Input Dims" not in args:
            return -1
        wanted = ["Input Dims", "Input type"] + ["Concrete Inputs"] * ("conv" in _text(event.get("name")))
        return self._intern(Texts.INPUTS, _joined(args, wanted))

    def _collective(self, args: dict[str, Any]) -> int:
        if "Collective name" not in args:
            return -1
        return self._intern(Texts.COLLECTIVES, _joined(args, _COLLECTIVE_ARGS))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _joined(args: dict[str, Any], wanted: Any) -> str:
    parts = (args.get(key, "") for key in wanted)
    return "\x1f".join(p if isinstance(p, str) else json.dumps(p, default=float, separators=(",", ":")) for p in parts)


def _scaled(number: Decimal, scale: int) -> int | None:
    """Number * 10^scale, halves away from zero; None if it is none, or must be whole (no scale) and is not."""
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        return None
    text = "".join(map(str, digits)).lstrip("0")
    if not text:
        return 0
    places = len(text) + exponent + scale
    if scale == 0 and text[max(places, 0) :].strip("0"):
        return None
    if places > 20:
        raise OverflowError
    magnitude = int(text[: max(places, 0)].ljust(max(places, 0), "0") or "0")
    if scale and 0 <= places < len(text) and text[places] >= "5":
        magnitude += 1
    return -magnitude if sign else magnitude

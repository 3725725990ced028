"""The layout of a recording in Python against the C recorder's header file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import unstall.child
from unstall.benchmark import reader
from unstall.child import layout
from unstall.records.vocabulary import Tick

HEADER_FILE = (Path(unstall.child.__file__).parent / "native" / "recorder.h").read_text()
FORMATS = {"char": "s", "uint64_t": "Q", "uint32_t": "I", "uint16_t": "H", "uint8_t": "B"}


def defined(name):
    """The value of a ``#define``."""
    return int(re.search(rf"^#define {name} (\d+)", HEADER_FILE, re.MULTILINE)[1])


def c_fields(name):
    """Name and format of each field of a C structure."""
    body = re.search(rf"typedef struct \{{([^}}]*)\}} {name};", HEADER_FILE)[1]
    found = re.findall(r"^\s*(?:volatile )?(\w+) (\w+)(?:\[(\w+)\])?;", body, re.MULTILINE)
    return tuple(
        (field, f"{count if count.isdigit() else defined(count)}{FORMATS[kind]}" if count else FORMATS[kind])
        for kind, field, count in found
    )


@pytest.mark.parametrize("name, fields", [("Header", layout.HEADER_FIELDS), ("Record", layout.RECORD_FIELDS)])
def test_the_fields_are_those_of_the_c_recorder(name, fields):
    assert c_fields(name) == fields


@pytest.mark.parametrize(
    "name, value",
    [
        ("FORMAT_VERSION", layout.VERSION),
        ("HEADER_BYTES", layout.HEADER_BYTES),
        ("TAIL_RECORDS", layout.TAIL_RECORDS),
        ("TICK_KINDS", layout.TICK_KINDS),
        ("REFETCHES", layout.REFETCHES),
        ("ROOT_GROUPS", layout.ROOT_GROUPS),
        ("FIRST_CALLS", layout.FIRST_CALLS),
        ("SERVING_CALLS", layout.SERVING_CALLS),
        ("FLAG_ERROR", layout.ERROR),
        ("FLAG_CPU", layout.CPU_KNOWN),
        ("FLAG_DELAY", layout.DELAY_KNOWN),
        ("FLAG_MAIN", layout.MAIN),
        ("FLAG_MODULE", layout.MODULE),
        ("FLAG_NETWORK", layout.NETWORK),
        ("FLAG_NOGRAD", layout.NOGRAD),
    ],
)
def test_the_constants_are_those_of_the_c_recorder(name, value):
    assert defined(name) == value


def test_the_kinds_are_those_of_the_vocabulary():
    assert (layout.TICK_OPTIMIZER, layout.TICK_FORWARD) == (Tick.OPTIMIZER, Tick.FORWARD)


def test_no_field_needs_padding():
    """C aligns a field to its size; the formats here are packed."""
    for fields in (layout.HEADER_FIELDS, layout.RECORD_FIELDS):
        at = 0
        for _, code in fields:
            size = reader.np.dtype(f"S{code[:-1]}" if code[-1] == "s" else code[-1]).itemsize
            assert code[-1] == "s" or at % size == 0
            at += layout.struct.calcsize("<" + code)


def test_numpy_reads_the_same_layout():
    assert reader.RECORD.itemsize == layout.RECORD_BYTES == layout.RECORD.size
    assert {name: place[1] for name, place in reader.HEADER.fields.items()} == layout.HEADER_AT
    assert reader.HEADER.fields["ticks"][1] + 8 * 3 == layout.tick_at(3)

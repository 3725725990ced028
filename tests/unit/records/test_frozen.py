"""What passes between rooms is never edited: every record is a frozen struct, and its collections are read-only types."""

import importlib
import inspect
import pkgutil
import typing

import msgspec
import pytest

from unstall import records

MODULES = [importlib.import_module(f"unstall.records.{info.name}") for info in pkgutil.iter_modules(records.__path__)]
STRUCTS = [
    found
    for module in MODULES
    for _, found in inspect.getmembers(module, inspect.isclass)
    if found.__module__ == module.__name__ and issubclass(found, msgspec.Struct)
]


def parts(annotation):
    """All types inside an annotation."""
    yield typing.get_origin(annotation) or annotation
    for inner in typing.get_args(annotation):
        yield from parts(inner)


def test_there_are_records():
    assert {"Report", "Measurement", "Archive", "Entry"} <= {struct.__name__ for struct in STRUCTS}


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_a_record_is_frozen(struct):
    assert struct.__struct_config__.frozen


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_no_field_of_a_record_is_of_a_type_that_can_be_edited(struct):
    hints = typing.get_type_hints(struct)
    for name in struct.__struct_fields__:
        assert not {list, dict, set, bytearray} & set(parts(hints[name])), name

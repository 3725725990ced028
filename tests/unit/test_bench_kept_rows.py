"""How the benches of bench/ keep the rows of their tables."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from benches import importable

with importable():
    from kept_rows import keep, rows_in


@dataclass(frozen=True)
class Row:
    name: str
    gain: float | None
    versions: list[str]


ROWS = [Row("grid", 2.5, ["abc"]), Row("größer", None, [])]


def test_rows_that_are_kept_are_read_as_they_were(tmp_path):
    path = tmp_path / "new" / "rows.json"
    keep(path, ROWS)
    assert rows_in(path, Row) == ROWS
    assert len(path.read_text().splitlines()) == len(ROWS) + 2  # a changed row is a changed line


def test_none_are_kept_where_no_file_is_named_and_none_found_where_none_is(tmp_path):
    keep(None, ROWS)
    assert rows_in(None, Row) == rows_in(tmp_path / "none.json", Row) == []
    keep(tmp_path / "empty.json", [])
    assert rows_in(tmp_path / "empty.json", Row) == []


def test_rows_of_another_form_are_no_rows(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text('[{"name": "grid"}]')
    with pytest.raises(TypeError, match="gain"):
        rows_in(path, Row)

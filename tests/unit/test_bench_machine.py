"""How the tables of bench/ name the sittings of their rows."""

from __future__ import annotations

from benches import importable

with importable():
    from machine import other_sittings

HERE = ("aaaaaaa", "2 cores of a machine, Python 3.11.7, 2026-11-28")
OLD = ("bbbbbbb", "2 cores of a machine, Python 3.11.7, 2026-11-27")


def test_rows_of_one_sitting_need_no_words_or_one_sentence():
    assert other_sittings({"a": HERE}, HERE) == ""
    assert other_sittings({"a": OLD, "b": OLD}, HERE) == f"All rows are of one sitting: version bbbbbbb, {OLD[1]}."


def test_rows_of_others_are_named_or_counted():
    rows = {"a": HERE, "b": OLD, **{f"c{n}": ("ccccccc", OLD[1]) for n in range(13)}}
    assert other_sittings(rows, HERE) == (
        f"**Rows were measured in several sittings:** b: version bbbbbbb, {OLD[1]}; 13 rows: version ccccccc, {OLD[1]}."
    )


def test_many_sittings_are_summed_up_by_machine():
    rows = {f"r{n}": (f"{n % 7:07}", f"1 core of {'AB'[n % 2]}, Python 3, 2026-11-{20 + n % 3}") for n in range(42)}
    found = other_sittings(rows, HERE)
    assert found.startswith("**Rows were measured in 42 sittings,** each row's own is kept with it: ")
    assert found.endswith(
        "21 rows of 7 versions on 1 core of A, Python 3, 2026-11-20 to 2026-11-22; "
        "21 rows of 7 versions on 1 core of B, Python 3, 2026-11-20 to 2026-11-22."
    )

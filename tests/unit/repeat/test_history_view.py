"""The history on a terminal: honest bars, no columns that say nothing, nothing of the program gets through."""

from __future__ import annotations

import io

import pytest
from makers import entry
from rich.console import Console

from unstall.report import history_view


def _shown(*entries, width=120, encoding="utf-8"):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    history_view.page(entries, width).show(Console(file=stream, width=width, highlight=False))
    stream.flush()
    return raw.getvalue().decode(encoding)


def test_a_line_a_run_and_one_a_program():
    shown = _shown(
        entry("20260102-030405-aaaaaa", 10.0), entry("20260103-030405-bbbbbb", 20.0, changes="12"), entry("x", None)
    )
    lines = [line for line in shown.splitlines() if line.strip()]
    assert [line.split()[0] for line in lines] == ["run", "aaaaaa", "bbbbbb", "x", "train.py"]
    assert "c0ffee00*" in shown and "10 → 20 steps/s (2×) in 2 runs" in shown
    assert "box" not in shown  # one host needs no column


def test_several_hosts_are_told_apart():
    assert "box" in _shown(entry("a"), entry("b", host="other"))


def test_a_run_that_failed_says_so():
    assert "exit -9" in _shown(entry("a", exit_code=-9))


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_hostile_names_are_data(encoding):
    hostile = "\x1b]0;owned\x07\x1b[31mx\ny\u202e"
    shown = _shown(
        entry(hostile, 1.0, command=[hostile], host=hostile, pattern=hostile, started=hostile, revision=hostile),
        entry("b"),
        encoding=encoding,
    )
    assert "\x1b" not in shown and "\u202e" not in shown and "owned" not in shown


def test_a_narrow_terminal_is_kept_to():
    shown = _shown(*(entry(str(number), command=["x" * 100]) for number in range(3)), width=60)
    assert max(map(len, shown.splitlines()[:4])) <= 60

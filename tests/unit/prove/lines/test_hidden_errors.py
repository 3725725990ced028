"""Changed lines that would hide an error which no run had."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstall.prove.lines.hidden_errors import first
from unstall.prove.lines.sources import Change
from unstall.prove.trees import Sides

TRAIN = Path("/program/train.py")
BEFORE = """\
def read(paths):
    for path in paths:
        yield load(path)
"""
HIDING = """\
def read(paths):
    for path in paths:
        try:
            yield load(path)
        except OSError:
            continue
"""


def hidden(after, *, before=BEFORE, reached=()):
    sides = Sides({TRAIN: before.encode()}, {TRAIN: after.encode()})
    return first(Change.of(sides), frozenset((str(TRAIN), line) for line in reached))


def test_a_handler_that_no_run_reached_is_named():
    assert hidden(HIDING) == "no run had an error that train.py:5 (except OSError) would hide"


@pytest.mark.parametrize(
    "caught", ["except", "except Exception as error", "except (OSError, ImportError)", "except io.Bad"]
)
def test_whatever_it_catches(caught):
    assert hidden(HIDING.replace("except OSError", caught)) is not None


@pytest.mark.parametrize(
    "after",
    [
        HIDING.replace("OSError", "ImportError"),
        HIDING.replace("OSError", "(ImportError, AttributeError)"),
        HIDING.replace("continue", "raise ValueError(path) from None"),
        BEFORE + "x = 1\n",
        "def f(:\n",
    ],
)
def test_what_hides_nothing_or_is_for_other_versions_is_none(after):
    assert hidden(after) is None


@pytest.mark.parametrize("caught", ["(StopIteration, RuntimeError)", "(queue.Empty, AttributeError)"])
def test_one_that_also_catches_what_comes_in_every_run_is_named_though_it_was_reached(caught):
    assert "would hide" in hidden(HIDING.replace("OSError", caught), reached=[6])


def test_what_a_run_has_reached_or_the_original_has_is_none():
    assert hidden(HIDING, reached=[6]) is None
    assert hidden(HIDING + "x = 1\n", before=HIDING) is None


@pytest.mark.parametrize(
    ("read", "is_named"),
    [
        ("[one.result() for one in reads if one.exception() is None]", True),
        ("await asyncio.gather(*reads, return_exceptions=True)", True),
        ("[one.result() for one in reads]", False),
        ('log.exception("it failed")', False),
    ],
)
def test_errors_of_threads_that_are_asked_for_count_where_they_are_written(read, is_named):
    after = f"async def read(reads):\n    return {read}\n"
    assert (hidden(after, reached=[2]) is not None) == is_named


@pytest.mark.parametrize(("caught", "is_named"), [("OSError", True), ("ImportError", False)])
def test_what_is_suppressed_counts_where_it_is_written(caught, is_named):
    after = f"def read(paths):\n    with contextlib.suppress({caught}):\n        return load(paths)\n"
    assert (hidden(after, reached=[3]) is not None) == is_named


@pytest.mark.parametrize(
    ("end", "is_named"),
    [("return rows", True), ("break", True), ("close()", False), ("for row in rows:\n                break", False)],
)
def test_leaving_a_finally_drops_the_error_that_led_there(end, is_named):
    after = f"def read(path):\n    for path in paths:\n        try:\n            load(path)\n        finally:\n            {end}\n"
    assert (hidden(after, reached=range(9)) is not None) == is_named


@pytest.mark.parametrize(
    ("value", "is_named"), [("True", True), ("self.quiet", True), ("False", False), ("None", False)]
)
def test_a_context_manager_of_its_own_may_drop_errors(value, is_named):
    after = f"class Quiet:\n    def __exit__(self, *error):\n        return {value}\n"
    assert (hidden(after, reached=[3]) is not None) == is_named
    assert hidden(after.replace("__exit__", "leave")) is None

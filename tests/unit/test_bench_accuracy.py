"""What the accuracy bench makes of figures and truths."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_BENCH = _ROOT / "bench"
sys.path.insert(0, str(_ROOT / "tests" / "zoo"))

from cases import Case  # noqa: E402


@pytest.fixture(scope="module")
def accuracy():
    sys.path.insert(0, str(_BENCH))  # it imports a neighbour
    try:
        spec = importlib.util.spec_from_file_location("accuracy", _BENCH / "accuracy.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules["accuracy"] = module
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(_BENCH))
        sys.modules.pop("accuracy", None)
        sys.modules.pop("accuracy_table", None)


@pytest.fixture(scope="module")
def table(accuracy):
    return sys.modules["accuracy_table"]


def figure(value, low, high, confidence="medium"):
    return {"value": value, "low": low, "high": high, "confidence": confidence, "known_by": "estimated"}


def row(table, name="a", *, ceiling=None, free=None, gain=None, speedup=None, pattern=True):
    return table.Row(name, "x/-", "x/-", pattern, None, None, "f", 2.0, "high", speedup, ceiling, gain, free)


def test_a_truth_outside_its_interval_is_not_covered(table):
    found = table.coverage([(figure(2, 1, 3), 2.5), (figure(2, 1.9, 2.1), 4.0), (figure(2, 1, 3), 1.0)])
    assert (found.programs, found.held) == (3, 2)
    assert found.error == pytest.approx(2.0)
    assert found.width == pytest.approx(3.0)


def test_errors_count_the_same_either_way(table):
    too_high, too_low = (table.coverage([(figure(value, 1, 9), 4.0)]) for value in (8.0, 2.0))
    assert too_high.error == pytest.approx(too_low.error) == pytest.approx(2.0)


def test_nothing_is_said_of_what_has_no_truth(table):
    assert table.coverage([]) is None
    assert table.claims([row(table, ceiling=figure(2, 1, 3))]) == []


def test_ceilings_and_gains_are_told_apart_and_by_confidence(table):
    rows = [
        row(table, "a", ceiling=figure(2, 1, 3, "high"), free=2.2, gain=figure(1.5, 1, 2, "low"), speedup=2.5),
        row(table, "b", ceiling=figure(4, 3, 5, "low"), free=9.0),
        row(table, "c", ceiling=figure(4, 3, 5, "low"), free=4.0, pattern=False),
    ]
    lines = "\n".join(table.claims(rows))
    assert "| ceiling | high | 1 | 1/1 (100%)" in lines
    assert "| ceiling | all | 2 | 1/2 (50%)" in lines
    assert "| expected gain | low | 1 | 0/1 (0%)" in lines
    assert "| ceiling | medium" not in lines


def test_no_true_ceiling_is_told_of_a_function_that_was_not_made_free(accuracy):
    transform = Case("p", "p.py", "input-bound", "transform", "Images.read_rgb")
    batching = Case("single_env", "single_env.py", "environment-bound", "batching", "collect")
    assert accuracy.free_speedup(transform, "Images.resize", 10.0, None) is None
    assert accuracy.free_speedup(batching, "collect", 10.0, None) is None


def test_rows_that_were_kept_become_the_table_again(table, accuracy, tmp_path):
    import argparse
    import json
    from dataclasses import asdict

    kept, page = tmp_path / "rows.json", tmp_path / "accuracy.md"
    kept.write_text(json.dumps([asdict(row(table, "prog", ceiling=figure(2, 1.5, 3), free=2.2))]))
    page.write_text("# Accuracy\n\nold\n\n## Held-out programs\n\nstays\n")
    words = {"seconds": 8.0, "layout": "script", "zoo": Path("zoo"), "note": "Fitted to these rows."}
    options = argparse.Namespace(results=kept, write=page, put=None, **words)
    assert accuracy.replay(options) == 0
    assert "2.00× (1.50 to 3.00, medium) | 2.20×" in page.read_text() and words["note"] in page.read_text()
    assert page.read_text().endswith("## Held-out programs\n\nstays\n")

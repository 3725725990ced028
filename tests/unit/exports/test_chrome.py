from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstall.exports import ExportError, Spans, chrome, export, exporters

SPANS = [
    ("step 1", "step", 1000.0, 0.25, 10, 10),
    ("forward", "phase", 1000.0000015, 0.1, 10, 10),
    ('na"me\n\ud800', "span", 1000.2, 0.01, 11, 12),
]


def write(spans, processes: dict[int, str], path: Path) -> None:
    export(exporters()["chrome"], Spans(processes, spans), str(path))


def events(path: Path) -> list[dict]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        return json.load(file)["traceEvents"]


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_spans_become_complete_events(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write(iter(SPANS), {10: "main", 11: "worker 0"}, path)
    complete = [event for event in events(path) if event["ph"] == "X"]
    assert [event["name"] for event in complete] == ["step 1", "forward", 'na"me\n?']
    assert complete[0] == {
        "ph": "X", "name": "step 1", "cat": "step", "ts": 1e9, "dur": 250000.0, "pid": 10, "tid": 10,
    }  # fmt: skip
    assert complete[1]["ts"] == pytest.approx(1_000_000_001.5, abs=1e-3)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_processes_are_named(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    write([], {10: "main", 11: "worker 0"}, path)
    names = {e["pid"]: e["args"]["name"] for e in events(path) if e["name"] == "process_name"}
    assert names == {10: "main", 11: "worker 0"}


def test_no_spans_is_a_trace_too(tmp_path: Path) -> None:
    write([], {}, tmp_path / "trace.json")
    assert events(tmp_path / "trace.json") == []


def test_a_failure_leaves_the_old_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text("old")

    def spans() -> Iterator[tuple]:
        yield SPANS[0]
        raise OSError("no space left on device")

    with pytest.raises(ExportError, match="no space left"):
        write(spans(), {}, path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["trace.json"]


@given(st.floats(0, 1e6), st.floats(0, 10), st.floats(0, 1), st.floats(0, 1))
def test_an_inner_span_stays_inside(start: float, duration: float, a: float, b: float) -> None:
    inner_start = start + duration * min(a, b)
    inner_end = min(start + duration * max(a, b), start + duration)
    spans = [
        ("outer", "", start, duration, 1, 1),
        ("inner", "", inner_start, inner_end - inner_start, 1, 1),
    ]
    outer, inner = (json.loads(one, parse_float=_nanoseconds) for one in chrome._span_events(Spans({}, spans)))
    # One nanosecond: what a float of a long uptime cannot hold to begin with.
    assert inner["ts"] >= outer["ts"]
    assert inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 1


def _nanoseconds(text: str) -> int:
    whole, fraction = text.split(".")
    return int(whole + fraction)


def test_spans_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    write([("a", "", float("nan"), 1.0, 1, 1), ("b", "", 1.0, -1.0, 1, 1)], {}, path)
    assert [(e["name"], e["dur"]) for e in events(path)] == [("b", 0.0)]

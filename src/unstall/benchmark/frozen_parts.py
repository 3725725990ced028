"""The parts of a model that learn nothing and come before all that learns: how much of its calls they take."""

from __future__ import annotations

from typing import Any

import numpy as np

from unstall.benchmark.model import module_tables, modules_window
from unstall.benchmark.reader import ProcessRecording, Spans
from unstall.child import layout
from unstall.child.frozen import FROZEN, LEARNS
from unstall.child.seams.modules import FORWARD
from unstall.child.seams.optimizer import STEP
from unstall.records.model import FrozenPart


def frozen_part(main: ProcessRecording) -> FrozenPart | None:
    """The largest of these parts, with the share of all; None where there is none, or no optimizer steps."""
    window = modules_window(main)
    rows = {row["id"]: row for table in module_tables(main) for row in table["modules"]}
    if window is None or window.get("per") != STEP.event:
        return None
    learning, frozen = ([id for id, row in rows.items() if row.get("state") == state] for state in (LEARNS, FROZEN))
    if not learning or not frozen:
        return None
    spans = main.spans[main.spans["name"] == main.ids.get(FORWARD.event, -1)]
    spans = spans[np.argsort(spans["start"], kind="stable")]
    shares, seconds = [], dict[int, float]()
    for begin, end in zip(window["marks"], window["marks"][1:]):
        inside = spans[(spans["start"] >= begin * 1e9) & (spans["start"] < end * 1e9)]
        total = float(inside["dur"][(inside["flags"] & layout.MODULE) == 0].sum())
        first = _outermost(_before(inside, learning, frozen))
        if total:
            shares.append(float(first["dur"].sum()) / total)
        for address, duration in zip(first["arg"].tolist(), first["dur"].tolist()):
            seconds[address] = seconds.get(address, 0.0) + duration
    share = float(np.median(shares)) if shares else 0.0
    return _named(rows[max(seconds, key=lambda address: seconds[address])], share) if share > 0 else None


def _before(spans: Spans, learning: list[int], frozen: list[int]) -> Spans:
    """Calls of parts that do not learn, before the first of one that does."""
    learns = np.isin(spans["arg"], np.array(learning, np.uint64))
    until = spans["start"][learns].min() if learns.any() else 0
    return spans[np.isin(spans["arg"], np.array(frozen, np.uint64)) & (spans["start"] + spans["dur"] <= until)]


def _outermost(spans: Spans) -> Spans:
    """Of calls in order of their start, those that are in no other."""
    ends = np.maximum.accumulate(spans["start"] + spans["dur"])
    return spans[np.append(True, spans["start"][1:] >= ends[:-1])[: len(spans)]]


def _named(row: dict[str, Any], share: float) -> FrozenPart:
    return FrozenPart(row["name"], row["type"], row["file"], int(row["line"]), min(share, 1.0))

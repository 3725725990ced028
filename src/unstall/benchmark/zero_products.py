"""Arithmetic on zeros, of the early cycles in which operators are looked at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from unstall.benchmark.model import frames_of, operator_looks
from unstall.benchmark.reader import ProcessRecording
from unstall.benchmark.thresholds import ZERO_ROWS
from unstall.records.model import ZeroProducts


def zero_products(main: ProcessRecording, device: str) -> ZeroProducts | None:
    """What is multiplied by zeros, with the line that has the most of it; None for a model on a ``device``."""
    look = next((look for look in operator_looks(main) if look.get("lines")), None)
    if look is None or "cuda" in device:
        return None
    # Of the lines that learn, where any does: the optimizer's operators are in no backward either.
    learning = [line for line in look["lines"] if line["backward"]]
    forward_s, backward_s = look.get("seconds", (0.0, 0.0))
    forward_s = sum(line["forward"] for line in learning) or forward_s
    wasted: dict[tuple[str, str, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
    lines: dict[tuple[str, str, int], Mapping[str, Any]] = {}
    for line in look["lines"]:
        in_forward, in_backward = _wasted(line)
        if line["path"] and in_forward + in_backward:
            place = tuple(line["path"][-1])
            wasted[place][0] += in_forward
            wasted[place][1] += in_backward
            lines.setdefault(place, line)
    if not wasted:
        return None
    line = lines[max(wasted, key=lambda place: sum(wasted[place]))]
    of_forward, of_gradients = _shares(line)
    return ZeroProducts(
        frames=frames_of(line["path"]),
        zeros=max(of_forward, of_gradients),
        of_gradients=of_forward < ZERO_ROWS,
        forward=min(1.0, sum(pair[0] for pair in wasted.values()) / forward_s) if forward_s else 0.0,
        backward=min(1.0, sum(pair[1] for pair in wasted.values()) / backward_s) if backward_s else 0.0,
    )


def _shares(line: Mapping[str, Any]) -> tuple[float, float]:
    """Of a line's time in forward, and in backward, that which multiplies by zeros."""
    in_forward, in_backward = _zeros(line)
    forward_s, backward_s = line["forward"], line["backward"]
    return in_forward / forward_s if forward_s else 0.0, in_backward / backward_s if backward_s else 0.0


def _zeros(line: Mapping[str, Any]) -> tuple[float, float]:
    forward_s, backward_s = line.get("zeros", (0.0, 0.0))
    return forward_s, backward_s


def _wasted(line: Mapping[str, Any]) -> tuple[float, float]:
    """Seconds in forward and in backward. Rows whose gradient is zero need not be computed in forward either."""
    in_forward, in_backward = _zeros(line)
    _, share = _shares(line)
    return max(in_forward, line["forward"] * share if share >= ZERO_ROWS else 0.0), in_backward

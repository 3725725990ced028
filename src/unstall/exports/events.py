"""The events of a timeline as one table: a row an event, host and device alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unstall.trace.timeline import DeviceKind, HostKind, Timeline


def event_columns(timeline: Timeline, category: Callable[[list[str], Any], Any]) -> dict[str, Any]:
    """A column a quantity, a row an event.

    Args:
        timeline: the trace. ``start_ns`` counts from its start; -1 stands for none in every column.
        category: makes a column of text from its distinct words and the number of the word in each row.
    """
    host, device = timeline.host, timeline.device
    hosts, devices = len(host), len(device)
    pids = np.array([thread.pid for thread in timeline.threads], np.int64)
    tids = np.array([thread.tid for thread in timeline.threads], np.int64)
    kinds = [kind.name.lower() for kind in HostKind] + [kind.name.lower() for kind in DeviceKind]

    def joined(of_host: Any, of_device: Any) -> Any:
        return np.concatenate([_filled(of_host, hosts), _filled(of_device, devices)])

    return {
        "where": category(["host", "device"], joined(0, 1)),
        "start_ns": joined(host.start_ns, device.start_ns),
        "dur_ns": joined(host.dur_ns, device.dur_ns),
        "kind": category(kinds, joined(host.kind.astype(np.int64), device.kind.astype(np.int64) + len(HostKind))),
        "name": category(timeline.names, joined(host.name, device.name)),
        "pid": joined(pids[host.thread], -1),
        "tid": joined(tids[host.thread], -1),
        "device": joined(-1, device.device),
        "stream": joined(-1, device.stream),
        "correlation": joined(host.correlation, device.correlation),
        "bytes": joined(-1, device.bytes),
    }


def _filled(value: Any, count: int) -> Any:
    return np.full(count, value, np.int64) if isinstance(value, int) else value

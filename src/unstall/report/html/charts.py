"""What the page's charts draw, as plain JSON: the steps, their distribution, predictions, the resources."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from unstall.records.observations import ResourcePoint
from unstall.records.vocabulary import in_order
from unstall.report.html import series

if TYPE_CHECKING:
    import numpy.typing as npt

    from unstall.records.archive import Archive
    from unstall.records.what_if import Knob, Sliders
    from unstall.report.html.series import Floats

_BUCKET_S = 0.5  # resources are looked at about as often
_MOST_POINTS = 800
_MOST_MARKS = 2000
_NOTABLE_BYTES_PER_S = 100e3
_NOTABLE_SHARE = 0.01
_COLOURS = {"loader workers": 1, "its other processes": 2, "other programs": 3}
"""What is not the first of a chart keeps its colour in all of them."""


def steps(archive: Archive) -> dict[str, Any] | None:
    """Step times and phases in buckets over all steps of the loop; None where there is no recording of them."""
    if archive.steps is None:
        return None
    recorded = archive.steps
    durations = recorded.durations
    edges = series.bucket_edges(len(recorded))
    low, mean, high = series.extremes(durations, edges)
    at_s = recorded.starts[edges[:-1]] - _zero(archive)
    return {
        "first": recorded.first,
        "edges": series.packed(edges),
        "at": series.packed(at_s),
        "low": series.packed(low),
        "mean": series.packed(mean),
        "high": series.packed(high),
        "phases": {
            name: series.packed(series.means(recorded.phase(name), edges)) for name in in_order(recorded.phases_f4)
        },
        "unmeasured": series.stretches(~recorded.measured),
        "gaps": np.flatnonzero(recorded.at_boundary)[:_MOST_MARKS].tolist(),
        "usual": float(np.quantile(durations, 0.99)),
    }


def distribution(archive: Archive) -> dict[str, Any] | None:
    """How the measured steps' times are distributed."""
    if archive.steps is None or not archive.steps.measured.any():
        return None
    durations = archive.steps.durations[archive.steps.measured]
    edges, counts, beyond = series.histogram(durations)
    p50, p95 = np.quantile(durations, (0.5, 0.95))
    return {
        "edges": edges.tolist(),
        "counts": counts.tolist(),
        "beyond": beyond,
        "longest": float(durations.max()),
        "marks": {"mean": float(durations.mean()), "p50": float(p50), "p95": float(p95)},
    }


def what_if(sliders: Sliders) -> dict[str, Any]:
    """Predictions for every combination of the sliders' positions."""
    outcomes = sliders.outcomes
    limits = sorted({outcome.bottleneck for outcome in outcomes})
    return {
        "knobs": [{"label": knob.label, "values": _positions(knob), "now": knob.now} for knob in sliders.knobs],
        "stepS": [outcome.step_s for outcome in outcomes],
        "low": [outcome.low for outcome in outcomes],
        "high": [outcome.high for outcome in outcomes],
        "limits": limits,
        "limit": [limits.index(outcome.bottleneck) for outcome in outcomes],
    }


def _positions(knob: Knob) -> list[str]:
    """A slider's positions as a person reads them."""
    if knob.kind in ("workers", "threads"):
        return [f"{value:g}" for value in knob.values]
    return [{1.0: "as it is", 0.0: "free"}.get(value, f"{value:g}×") for value in knob.values]


def resources(archive: Archive) -> dict[str, Any] | None:
    """Cores, memory, disk and devices over the run, in buckets of half a second or more."""
    points = [point for point in archive.resources if math.isfinite(point.t)]
    if len({point.t for point in points}) < 3:
        return None
    begin, end = min(point.t for point in points), max(point.t for point in points)
    edges = np.linspace(begin, end, int(np.clip((end - begin) / _BUCKET_S, 2, _MOST_POINTS)) + 1)
    roles = _by_role(archive, points)
    panels = [
        _cores(archive, roles, edges),
        _panel("Memory", "bytes", [(role, _held(group, edges)) for role, group in roles.items()], stacked=True),
        _panel("Main thread waiting for a core", "share", _waiting(roles, edges), least=_NOTABLE_SHARE),
        _panel("Disk", "bytes/s", _disk(points, edges), least=_NOTABLE_BYTES_PER_S),
        *_devices(archive, edges),
    ]
    return {
        "t": series.packed(edges[:-1] - _zero(archive)),
        "bucket_s": float(edges[1] - edges[0]),
        "panels": [panel for panel in panels if panel is not None],
    }


def _zero(archive: Archive) -> float:
    """The run's beginning on its own clock."""
    if archive.began:
        return archive.began
    return float(archive.steps.starts[0]) if archive.steps is not None else 0.0


def _by_role(archive: Archive, points: list[ResourcePoint]) -> dict[str, list[list[ResourcePoint]]]:
    """The points of each process, by what it is to the program."""
    measurement = archive.measurement
    mains = measurement.rank_pids | {measurement.main_pid} if measurement else set()
    workers = set(measurement.worker_pids) if measurement else set()
    for rank in measurement.ranks if measurement else ():
        workers |= rank.worker_pids
    processes: defaultdict[int, list[ResourcePoint]] = defaultdict(list)
    for point in points:
        processes[point.pid].append(point)
    roles: dict[str, list[list[ResourcePoint]]] = {}
    for pid, own in processes.items():
        if not measurement:
            role = "the program"
        elif pid in mains:
            role = "main process" if len(mains) == 1 else "ranks"
        else:
            role = "loader workers" if pid in workers else "its other processes"
        roles.setdefault(role, []).append(own)
    order = ("main process", "ranks", "the program", "loader workers", "its other processes")
    return {role: roles[role] for role in order if role in roles}


def _cores(archive: Archive, roles: dict[str, list[list[ResourcePoint]]], edges: Floats) -> dict[str, Any] | None:
    shown = [(role, sum(_rate(points, "cpu_s", edges) for points in group)) for role, group in roles.items()]
    program_cores = sum(rate for _, rate in shown)
    if len(archive.machine) > 2:
        program_cores = program_cores + _rate(archive.machine, "unseen_cpu_s", edges)
        outside = _rate(archive.machine, "busy_cpu_s", edges) - program_cores - archive.machine[-1].beyond_quota
        shown.append(("other programs", outside.clip(0)))
    panel = _panel("Cores at work", "cores", shown, stacked=True)
    cores = archive.report.run.environment.get("cpu_count")
    if panel is not None and isinstance(cores, (int, float)) and cores > 0:
        panel["ceiling"] = float(cores)
    return panel


def _waiting(roles: dict[str, list[list[ResourcePoint]]], edges: Floats) -> list[tuple[str, Any]]:
    """Of the first process of the loop: its main thread, ready to run and without a core."""
    group = roles.get("main process") or roles.get("ranks") or roles.get("the program") or []
    return [("waiting", _rate(group[0], "run_delay_s", edges).clip(0, 1))] if group else []


def _disk(points: list[ResourcePoint], edges: Floats) -> list[tuple[str, Any]]:
    processes: defaultdict[int, list[ResourcePoint]] = defaultdict(list)
    for point in points:
        processes[point.pid].append(point)
    return [
        (name, sum(_rate(process, attribute, edges) for process in processes.values()))
        for name, attribute in (("read", "read_bytes"), ("written", "write_bytes"))
    ]


def _devices(archive: Archive, edges: Floats) -> Iterable[dict[str, Any] | None]:
    count = max((len(point.gpu_utilization) for point in archive.machine), default=0)
    points = [point for point in archive.machine if len(point.gpu_utilization) == count]
    if not count or len(points) < 2:
        return
    busy = [(f"GPU {i}", _level(points, [p.gpu_utilization[i] for p in points], edges)) for i in range(count)]
    yield _panel("GPU at work", "share", busy)
    with_memory = [p for p in points if len(p.gpu_memory_bytes) == count]
    if with_memory:
        memory = [
            (f"GPU {i}", _level(with_memory, [p.gpu_memory_bytes[i] for p in with_memory], edges)) for i in range(count)
        ]
        yield _panel("GPU memory", "bytes", memory)


def _panel(
    title: str, unit: str, shown: list[tuple[str, Any]], *, stacked: bool = False, least: float = 0.0
) -> dict[str, Any] | None:
    """One chart; None where nothing of it reaches ``least``."""
    if not shown or max(float(values.max()) for _, values in shown) <= least:
        return None
    return {
        "title": title,
        "unit": unit,
        "stacked": stacked,
        "series": [
            {"name": name, "values": series.packed(values), "colour": f"s-{_COLOURS.get(name, i % 4)}"}
            for i, (name, values) in enumerate(shown)
            if values.any()
        ],
    }


def _rate(points: Iterable[Any], attribute: str, edges: Floats) -> Floats:
    """Mean growth a second of a counter in each bucket; none outside the time it was looked at."""
    samples = [(point.t, getattr(point, attribute)) for point in points]
    t, value = (np.array(column, dtype=np.float64) for column in zip(*samples))
    rates: Floats = np.diff(np.interp(edges, t, value)) / np.diff(edges)
    return rates


def _held(group: list[list[ResourcePoint]], edges: Floats) -> Floats:
    """Most bytes that the processes held together in each bucket."""
    times = np.unique([point.t for points in group for point in points])
    total = np.zeros(len(times))
    for points in group:
        t = np.array([point.t for point in points])
        total += np.interp(times, t, [float(point.rss_bytes) for point in points], left=0.0, right=0.0)
    return _most(times, total, edges)


def _level(points: list[Any], values: list[Any], edges: Floats) -> Floats:
    return _most(np.array([point.t for point in points]), np.array(values, dtype=np.float64), edges)


def _most(times: Floats, values: Floats, edges: Floats) -> Floats:
    """The largest value in each bucket; where none was taken, the one that lies on the line between its neighbours."""
    most = np.interp((edges[:-1] + edges[1:]) / 2, times, values)
    bucket: npt.NDArray[np.int64] = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, len(most) - 1)
    np.maximum.at(most, bucket, values)
    return most

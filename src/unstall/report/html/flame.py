"""Sampled stacks as trees for the flame graph, one for each kind of process, small enough for a page."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unstall.records.observations import StackSample
from unstall.text.sanitize import sanitize_line, shorten, shorten_left

if TYPE_CHECKING:
    from unstall.records.archive import Archive

_LEAST_SHARE = 0.003
_MOST_NODES = 3000
_MOST_DEPTH = 120
_LIBRARY = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python3\.\d+t?[/\\]|^<frozen ")


@dataclass
class _FlameNode:
    """A function called from one stack of others."""

    count: int = 0
    lines: Counter[int] = field(default_factory=Counter)
    children: dict[tuple[str, str], _FlameNode] = field(default_factory=dict)


def graphs(archive: Archive) -> list[dict[str, Any]]:
    """A tree for each group of processes that was sampled, the largest group of main threads first."""
    groups: dict[str, list[StackSample]] = {}
    for sample in archive.stacks:
        groups.setdefault(_group(archive, sample), []).append(sample)
    order = {"main thread": 0, "loader workers": 2, "other threads": 3}
    named = sorted(groups.items(), key=lambda item: (order.get(item[0], 1), -sum(s.count for s in item[1])))
    return [_graph(name, samples) for name, samples in named]


def _group(archive: Archive, sample: StackSample) -> str:
    measurement = archive.measurement
    if measurement is None:
        return "main thread" if sample.main_thread else "other threads"
    workers = set(measurement.worker_pids)
    ranks = {rank.pid: rank.rank for rank in measurement.ranks}
    for rank in measurement.ranks:
        workers |= rank.worker_pids
    if sample.pid in workers:
        return "loader workers"
    if not sample.main_thread:
        return "other threads"
    if sample.pid in ranks and len(ranks) > 1:
        return f"rank {ranks[sample.pid]}"
    return "main thread" if sample.pid == measurement.main_pid else "other processes"


def _graph(name: str, samples: list[StackSample]) -> dict[str, Any]:
    root = _FlameNode()
    for sample in samples:
        _add(root, sample)
    least = max(_LEAST_SHARE * root.count, _least_of(root))
    return {"name": name, "samples": root.count, "tree": _tree("all", "", root, least)}


def _add(root: _FlameNode, sample: StackSample) -> None:
    """Functions are told apart by name and file; which of their lines was seen most is kept beside."""
    node = root
    node.count += sample.count
    for frame in sample.frames[:_MOST_DEPTH]:
        node = node.children.setdefault((frame.function, frame.file), _FlameNode())
        node.count += sample.count
        node.lines[frame.line] += sample.count


def _least_of(root: _FlameNode) -> int:
    """The samples a function must have, so that no more than so many are drawn."""
    counts, todo = [], [root]
    while todo:
        node = todo.pop()
        counts.append(node.count)
        todo.extend(node.children.values())
    return sorted(counts, reverse=True)[_MOST_NODES] + 1 if len(counts) > _MOST_NODES else 1


def _tree(function: str, file: str, node: _FlameNode, least: float) -> dict[str, Any]:
    children = sorted(node.children.items(), key=lambda item: (-item[1].count, item[0]))
    frame: dict[str, Any] = {
        "name": shorten(sanitize_line(function), 80),
        "value": node.count,
        "children": [_tree(*key, child, least) for key, child in children if child.count >= least],
    }
    if file:
        line = node.lines.most_common(1)[0][0]
        frame["at"] = f"{shorten_left(_short(file), 120)}:{line}"
        frame["kind"] = _kind(file)
    return frame


def _kind(file: str) -> str:
    """``torch``, ``library`` or ``own``: what the reader can change is the latter."""
    if re.search(r"[/\\]torch[/\\]", file) and _LIBRARY.search(file):
        return "torch"
    return "library" if _LIBRARY.search(file) or not os.path.splitext(file)[1] else "own"


def _short(file: str) -> str:
    """The end of a path, from the package or the last folders."""
    file = sanitize_line(file)
    for packages in ("/site-packages/", "/dist-packages/"):
        if packages in file:
            return file.rpartition(packages)[2]
    return "/".join(file.split("/")[-3:])

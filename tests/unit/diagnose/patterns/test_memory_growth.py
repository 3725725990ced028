"""Memory-growth: what a program keeps."""

from __future__ import annotations

import random

import pytest
from factory import (
    Source,
)
from patterncase import check, match

from unstall.records.measurements import (
    GrowingObject,
    MemoryMeasurement,
)


def growing(rate, steps=200, start=5e8):
    return [(float(step), start + rate * step) for step in range(0, steps, 4)]


def test_memory_growth_is_told_by_its_rate():
    memory = MemoryMeasurement(rss_by_step=growing(2e6), rss_peak=900_000_000, available=8_000_000_000)
    finding = check(match("memory-growth", memory=memory), "memory-growth", headroom=1.0)
    assert any("2 MB a step" in line for line in finding.evidence)
    assert any("memory is full in" in line for line in finding.evidence)


def test_readings_at_all_moments_of_a_step_seldom_seem_to_grow():
    """As of a model whose activations come and go: the memory is read wherever a step is."""
    draw = random.Random(0)
    noisy = [[(4.7 * n, 4.4e8 + draw.gauss(0, 3.5e7)) for n in range(31)] for _ in range(1000)]
    assert sum(grows(series) for series in noisy) <= 1
    leaking = [[(step, held + 8e6 * step) for step, held in series] for series in noisy[:50]]
    assert all(map(grows, leaking))


def grows(series):
    return match("memory-growth", memory=MemoryMeasurement(rss_by_step=series)) is not None


@pytest.mark.parametrize(
    ("looks", "rate", "found"),
    [(5, 1.9e6, False), (5, 0.5e6, True), (2, 1.9e6, True)],
    ids=["most of it was freed", "little of it was", "too few looks"],
)
def test_what_the_allocator_holds_is_kept_by_nobody(looks, rate, found):
    free = [(40.0 * look, 2e8 + rate * 40 * look) for look in range(looks)]
    memory = MemoryMeasurement(rss_by_step=growing(2e6), free_by_step=free)
    assert (match("memory-growth", memory=memory) is not None) == found


@pytest.mark.parametrize(
    ("points", "rate", "found"),
    [(40, 0.0, False), (40, 0.5e6, False), (40, 2e6, True), (4, 0.0, True)],
    ids=["none is allocated", "little is", "as much is", "too few looks"],
)
def test_pages_of_what_was_allocated_whole_end_with_it(points, rate, found):
    mapped = [(5.0 * look, 9e9 + rate * 5 * look) for look in range(points)]
    memory = MemoryMeasurement(rss_by_step=growing(2e6), mapped_by_step=mapped)
    assert (match("memory-growth", memory=memory) is not None) == found


def test_device_memory_counts_as_well():
    finding = match("memory-growth", memory=MemoryMeasurement(device_by_step=growing(2e6)))
    assert "device memory" in finding.evidence[0]


def kept(path, file, function, **more):
    rates = {"len_per_step": 1.0, "bytes_per_step": 2e6, "graph_per_step": 0.0}
    return GrowingObject(path=path, kind="list", file=file, function=function, **{**rates, **more})


def test_the_line_that_adds_to_what_grows_is_the_culprit(tmp_path):
    code = Source(
        tmp_path / "train.py",
        "def train(loader):\n    losses = []\n    for x in loader:\n        losses.append(x)  # kept\n",
    )
    memory = MemoryMeasurement(
        rss_by_step=growing(2e6), growing=[kept("losses", code.file, "train", graph_per_step=3.0)]
    )
    finding = match("memory-growth", memory=memory)
    assert (finding.cause, finding.culprit.line, finding.confidence) == ("graph", code.line("# kept"), "high")
    assert any("losses (list) keeps growing: its autograd graph by 3 nodes a step" in line for line in finding.evidence)


def test_what_the_loop_keeps_in_another_function_is_looked_for_in_the_loop(tmp_path):
    code = Source(
        tmp_path / "train.py", "def train(loader, losses):\n    for x in loader:\n        losses.append(x)  # kept\n"
    )
    held = kept("losses", str(tmp_path / "gone.py"), "main")
    memory = MemoryMeasurement(rss_by_step=growing(2e6), growing=[held], loop=(code.file, "train"))
    assert match("memory-growth", memory=memory).culprit.line == code.line("# kept")


def test_a_cache_around_a_function_is_that_functions():
    wrapped = ("/home/me/train.py", "encode", 12)
    memory = MemoryMeasurement(
        rss_by_step=growing(2e6), growing=[kept("encode.cache_info", "/home/me/train.py", "encode", wrapped=wrapped)]
    )
    finding = match("memory-growth", memory=memory)
    assert (finding.culprit.function, finding.culprit.line, finding.cause) == ("encode", 12, "cache")


@pytest.mark.parametrize("series", [growing(0), growing(-1e6), growing(2e6)[:3], []])
def test_memory_that_does_not_grow_is_none(series):
    assert match("memory-growth", memory=MemoryMeasurement(rss_by_step=series)) is None


BUFFER = """
class Buffer:
    def push(self, x):
        if len(self.memory) < self.capacity:
            self.memory.append(x)  # kept
        self.seen.append(1)  # counted
"""


@pytest.mark.parametrize(
    ("buffer", "count", "found"),
    [({}, 8.0, None), ({}, 1e6, "# counted"), ({"bytes_per_step": 2e5}, 8.0, "# counted")],
    ids=["the buffer explains it", "another keeps much as well", "the buffer explains little"],
)
def test_what_has_a_capacity_ends_growing(tmp_path, buffer, count, found):
    code = Source(tmp_path / "train.py", BUFFER)
    held = [kept("buffer.memory", code.file, "Buffer", **buffer)]
    held.append(kept("buffer.seen", code.file, "Buffer", bytes_per_step=count))
    finding = match("memory-growth", memory=MemoryMeasurement(rss_by_step=growing(2e6), growing=held))
    assert (finding and finding.culprit.line) == (found and code.line(found))


def test_a_graph_grows_in_a_buffer_of_a_capacity_too(tmp_path):
    code = Source(tmp_path / "train.py", BUFFER)
    held = kept("buffer.memory", code.file, "Buffer", graph_per_step=2.0)
    finding = match("memory-growth", memory=MemoryMeasurement(rss_by_step=growing(2e6), growing=[held]))
    assert (finding.cause, finding.culprit.line) == ("graph", code.line("# kept"))

"""Two machines' clocks put on one: what all ranks enter together ends for all of them at the same moment.

The way of NTP without its messages: the difference of the two clocks at the ends of the same call, of many calls, in
blocks whose medians a straight line joins, because clocks drift and single calls are disturbed. A rank that waits for
others wakes up late where its core is taken, in the median too. But nobody leaves a call before all have entered it:
the quickest call of a block bounds what the clocks can differ by.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unstall.benchmark.thresholds import CALLS_IN_BLOCK, CLOCK_BLOCKS, FEWEST_CALLS
from unstall.records.part import Exchanges, RankPart

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MachineClock:
    """How far a machine's clock is ahead of the reference's, over its own time."""

    times: Floats
    """Seconds on its own clock, ascending."""
    ahead: Floats
    """Seconds at these times, which a straight line joins."""
    error_s: float
    """Median distance of a call's two ends, aligned."""

    @property
    def offset_s(self) -> float:
        """In the middle of the run."""
        return float(np.interp((self.times[0] + self.times[-1]) / 2, self.times, self.ahead))

    @property
    def drift(self) -> float:
        """Growth of the offset, seconds a second."""
        covered = float(self.times[-1] - self.times[0])
        return float(self.ahead[-1] - self.ahead[0]) / covered if covered > 0 else 0.0

    def aligned(self, times: Floats) -> Floats:
        """Times of this machine on the reference's clock."""
        return np.asarray(times - np.interp(times, self.times, self.ahead), dtype=np.float64)


SAME = MachineClock(np.zeros(1), np.zeros(1), 0.0)
"""The clock of the reference's own machine."""


def between(reference: RankPart, other: RankPart) -> tuple[str, MachineClock] | None:
    """The other rank's clock by the kind of call that fits best, and that kind; None without calls in common."""
    own = {exchanges.kind: exchanges for exchanges in reference.exchanges}
    pairs = [(own[exchanges.kind], exchanges) for exchanges in other.exchanges if exchanges.kind in own]
    clocks = [(pair[0].kind, by_kind) for pair in pairs if (by_kind := _by_kind(*pair)) is not None]
    return min(clocks, key=lambda item: item[1].error_s, default=None)


def calls_in_common(first: Exchanges, second: Exchanges) -> tuple[slice, slice]:
    """The same calls in either series: strides are powers of two, so the coarser one's are in both."""
    stride = max(first.stride, second.stride)
    first_stride, second_stride = max(stride // first.stride, 1), max(stride // second.stride, 1)
    count = min(len(first.ends[::first_stride]), len(second.ends[::second_stride]))
    return slice(0, count * first_stride, first_stride), slice(0, count * second_stride, second_stride)


def _by_kind(reference: Exchanges, other: Exchanges) -> MachineClock | None:
    ours, theirs = calls_in_common(reference, other)
    times = other.ends[theirs]
    ahead = times - reference.ends[ours]
    usable = np.isfinite(times) & np.isfinite(ahead)
    times, ahead = times[usable], ahead[usable]
    if len(times) < FEWEST_CALLS:
        return None
    began = other.starts[theirs][usable] - reference.ends[ours][usable]
    ended = times - reference.starts[ours][usable]
    order = np.argsort(times, kind="stable")
    blocks = np.array_split(order, int(np.clip(len(times) // CALLS_IN_BLOCK, 1, CLOCK_BLOCKS)))
    block_times = np.array([np.median(times[block]) for block in blocks])
    block_ahead = np.array([np.median(ahead[block]) for block in blocks])
    drift = np.polyfit(block_times - times.min(), block_ahead, 1)[0] if len(blocks) > 1 else 0.0
    drifted = drift * (times - np.repeat(block_times, [len(block) for block in blocks])[np.argsort(order)])
    block_ahead = np.array(
        [
            _in_bounds(middle, (began - drifted)[block], (ended - drifted)[block])
            for middle, block in zip(block_ahead, blocks)
        ]
    )
    if len(blocks) > 1:
        block_times, block_ahead = _to_the_ends(block_times, block_ahead, times.min(), times.max())
    error = np.abs(ahead - np.interp(times, block_times, block_ahead))
    return MachineClock(block_times, block_ahead, float(np.median(error)))


def _in_bounds(ahead: float, least: Floats, most: Floats) -> float:
    """The difference of two clocks, as far as causes come before their effects; as it is where these contradict.

    Args:
        ahead: by the ends of some calls, seconds.
        least: of each call, from the reference's end to the other's beginning, which comes before it; shape (calls,).
        most: from the reference's beginning to the other's end, which comes after it.
    """
    low, high = float(least.max()), float(most.min())
    return min(max(ahead, low), high) if low <= high else ahead


def _to_the_ends(times: Floats, ahead: Floats, first: float, last: float) -> tuple[Floats, Floats]:
    """The line through the middles of the blocks, drawn on to the first call and to the last."""
    slopes = np.diff(ahead) / np.maximum(np.diff(times), 1e-9)
    before = ahead[0] - slopes[0] * (times[0] - first)
    after = ahead[-1] + slopes[-1] * (last - times[-1])
    return np.array([first, *times, last]), np.array([before, *ahead, after])

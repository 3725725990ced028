"""Parts of a run on several machines, made without any: ranks that step together, each machine with a clock of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unstall.benchmark.reader import RECORD, ProcessRecording
from unstall.child.layout import CPU_KNOWN, DELAY_KNOWN, MAIN
from unstall.records.measurements import RankMeasurement
from unstall.records.observations import Frame, StackSample
from unstall.records.part import MOST_CALLS, Exchanges, Part, RankPart

STEP_S = 0.2
WAIT_S = 0.02


@dataclass
class Job:
    """A run: what each rank does in a step, and the clocks of its machines.

    Args:
        late: seconds that a rank works longer in every step.
        offsets: how far a machine's clock is ahead, seconds, and by how much it drifts, seconds a second.
        ended: the steps that a rank made, where it died early.
    """

    nodes: int = 2
    ranks_per_node: int = 2
    steps: int = 400
    late: dict[int, float] = field(default_factory=dict)
    offsets: dict[int, tuple[float, float]] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    restarts: dict[int, int] = field(default_factory=dict)
    seed: int = 0
    jitter_s: float = 0.0002

    def __post_init__(self):
        # Every rank has its own pace: as work is never shared out quite evenly.
        self.random = np.random.default_rng(self.seed)
        self.own_s = {rank: STEP_S - WAIT_S + self.late.get(rank, 0.0) for rank in range(self.world_size)}
        self.own_s = {rank: own + abs(self.random.normal(0, 0.002)) for rank, own in self.own_s.items()}
        self.step_s = max(self.own_s.values()) + WAIT_S / 4
        self.ends = 1000.0 + self.step_s * np.arange(1, self.steps + 1)

    @property
    def world_size(self):
        return self.nodes * self.ranks_per_node

    def part(self, node, **changes):
        """The part of one machine."""
        numbers = range(node * self.ranks_per_node, (node + 1) * self.ranks_per_node)
        facts = {"job": "job", "host": f"node{node}", "world_size": self.world_size, "exit_code": 0}
        return Part(**facts | {"ranks": [self.rank(number) for number in numbers]} | changes)

    def rank(self, number):
        """One rank of a part: it backs into the exchange, whose end is the same for all."""
        node, own = number // self.ranks_per_node, self.own_s[number]
        wait = max(self.step_s - own, 0.0)
        count = self.ended.get(number, self.steps)
        ends = self.ends[:count] + self.random.exponential(self.jitter_s, count)
        starts = self.ends[:count] - wait - self.random.exponential(self.jitter_s, count)
        pid = 100 + number % self.ranks_per_node  # the same on every machine
        return RankPart(
            measurement=RankMeasurement(
                rank=number,
                pid=pid,
                step_s=self.step_s,
                phases={"forward": 0.05, "backward": 0.1 + wait, "other": own - 0.15},
                blocked={"backward": wait},
                host=f"node{node}",
                local_rank=number % self.ranks_per_node,
                steps=count,
            ),
            restarts=self.restarts.get(number, 0),
            exchanges=[exchanges("backward", self.on_clock(node, starts), self.on_clock(node, ends))],
        )

    def recording(self, number):
        """The same rank as its machine records it, span by span."""
        node, own = number // self.ranks_per_node, self.own_s[number]
        count = self.ended.get(number, self.steps)
        ends = self.on_clock(node, self.ends[:count])
        backward_s = 0.1 + max(self.step_s - own, 0.0)
        spans = np.zeros((count, 3), RECORD)
        for i, (start, length) in enumerate(
            [(ends - self.step_s + 0.001, 0.05), (ends - backward_s, backward_s), (ends, 0.001)]
        ):
            spans[:, i]["start"] = start * 1e9
            spans[:, i]["dur"] = spans[:, i]["self"] = length * 1e9
            spans[:, i]["cpu"] = min(length, 0.1) * 1e7
            spans[:, i]["name"] = i + 1
        spans["arg"], spans["thread"], spans["flags"] = 1, 1, MAIN | CPU_KNOWN | DELAY_KNOWN
        names = {1: "~forward", 2: "~backward", 3: "~optimizer"}
        pid, host = 100 + number % self.ranks_per_node, f"node{node}"
        facts = {
            "process": [{"pid": pid, "parent": 50, "host": host}],
            "rank": [{"rank": number, "world_size": self.world_size, "host": host, "job": "job", "restart": 0}],
        }
        return ProcessRecording(pid, 50, spans.ravel(), names, facts)

    def on_clock(self, node, times):
        """Times as a machine's clock shows them."""
        offset, drift = self.offsets.get(node, (0.0, 0.0))
        return times + offset + drift * (times - times[0])

    def stacks(self, node):
        """Samples of each rank of a machine; the late ones are in a function of their own."""
        return [
            StackSample(
                100 + local,
                "MainThread",
                (Frame("<module>", "/srv/train.py", 30), Frame(self._function(node, local), "/srv/train.py", 7)),
                200,
            )
            for local in range(self.ranks_per_node)
        ]

    def _function(self, node, local):
        return "fetch_slowly" if node * self.ranks_per_node + local in self.late else "train"


def exchanges(kind, starts, ends):
    """As a part has them: every n-th call."""
    stride = 1
    while len(ends) > stride * MOST_CALLS:
        stride *= 2
    starts, ends = (times[::stride].astype("<f8").tobytes() for times in (starts, ends))
    return Exchanges(kind=kind, stride=stride, starts_f8=starts, ends_f8=ends)

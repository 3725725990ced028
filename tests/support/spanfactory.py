"""Synthetic recordings: a clock that a test moves on, and the spans that it passes through."""

from __future__ import annotations

import contextlib
import json

import numpy as np

from unstall.benchmark.reader import RECORD, ProcessRecording
from unstall.benchmark.steps import find_loop
from unstall.child.layout import MAIN
from unstall.records.vocabulary import Phase

SECOND = 1_000_000_000


class Recording:
    """Spans of one process, written as a program would have run. Times are seconds.

    ``with r.span("~data.next"): r.spend(0.1)`` or, for a span with nothing inside, ``r.do("~data.next", 0.1)``.
    """

    def __init__(self, pid=100, parent=1, *, begin=1000.0, thread=None, flags=MAIN):
        self.pid, self.parent = pid, parent
        self.now = round(begin * SECOND)
        self.thread = thread or pid
        self.flags = flags
        self.ids = {}
        self.rows = []
        self.facts = {}
        self._open = []  # [ns inside] of each open span

    @property
    def t(self):
        """The clock, seconds."""
        return self.now / SECOND

    def spend(self, seconds):
        """Let time pass."""
        self.now += round(seconds * SECOND)

    def plug_in(self, *added):
        """Phases and seams that a plug-in added, as the process tells the parent, through JSON."""
        for one in added:
            kind = "phase" if isinstance(one, Phase) else "seam"
            self.emit_fact(kind, **{kind: json.loads(json.dumps(one))})

    def emit_fact(self, kind, **facts):
        """A line of facts, as the watcher tells it."""
        self.facts.setdefault(kind, []).append({"kind": kind, "t": self.t, **facts})

    @contextlib.contextmanager
    def span(self, name, *, arg=1, flags=0, cpu=None, delay=0.0):
        """A span around what is done inside. ``cpu`` and ``delay``: seconds, where they are known."""
        start = self.now
        self._open.append(0)
        yield
        inside = self._open.pop()
        duration = self.now - start
        if self._open:
            self._open[-1] += duration
        if cpu is not None:
            flags |= 2 | 4
        number = self.ids.setdefault(name, len(self.ids) + 1)
        held = round((cpu or 0) * 1e7), round(delay * 1e7)
        self.rows.append(
            (start, duration, duration - inside, *held, arg, self.thread, number, len(self._open), flags | self.flags)
        )

    def do(self, name, seconds=0.0, **options):
        """A span in which nothing else happens."""
        with self.span(name, **options):
            self.spend(seconds)

    def process(self):
        """As the reader gives it."""
        spans = np.array(self.rows, dtype=RECORD)
        spans = spans[np.lexsort((spans["depth"], spans["start"]))]
        names = {number: name for name, number in self.ids.items()}
        return ProcessRecording(self.pid, self.parent, spans, names, self.facts)


def train(r, steps, *, data=0.010, forward=0.020, backward=0.030, optimizer=0.005, other=0.0, model=1, optimizer_id=2):
    """An ordinary training loop over one epoch of a loader."""
    r.do("~data.iter", 0.001)
    for _ in range(steps):
        train_step(
            r,
            data=data,
            forward=forward,
            backward=backward,
            optimizer=optimizer,
            other=other,
            model=model,
            optimizer_id=optimizer_id,
        )


def train_step(
    r, *, data=0.010, forward=0.020, backward=0.030, optimizer=0.005, other=0.0, model=1, optimizer_id=2, batches=1
):
    """One optimizer step, of one batch or of several."""
    for _ in range(batches):
        r.do("~data.next", data)
        r.do("~forward", forward, arg=model)
        r.do("~backward", backward)
    r.do("~optimizer", optimizer, arg=optimizer_id)
    r.spend(other)


def loop_of(recording):
    return find_loop(recording.process())


def mean(loop, name, steps=slice(None)):
    """Mean seconds a step of a phase."""
    return loop.phases[steps, loop.phase_names.index(name)].mean()


def check_loop(loop):
    """What holds of every loop."""
    total = loop.ends - loop.starts
    assert loop.phases.shape == (len(loop), len(loop.phase_names))
    assert (loop.phases >= 0).all()
    np.testing.assert_allclose(loop.phases.sum(axis=1), total, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(loop.starts[1:], loop.ends[:-1])
    assert (total >= 0).all()
    for extra in (loop.blocked, loop.network, loop.network_bytes):
        assert extra.shape == loop.phases.shape
        assert (extra >= 0).all()
    assert loop.at_boundary.shape == loop.validation_calls.shape == (len(loop),)

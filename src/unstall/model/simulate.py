"""A discrete-event simulation of one training or inference loop, faithful to torch's DataLoader.

What torch 2.13 does, and this does after it (``torch/utils/data/dataloader.py``): batches are handed out as tasks, in
order to the workers in turn; a worker makes one batch at a time; at most workers times prefetch_factor tasks are
outstanding, and taking over a batch hands out the next; batches are given to the loop in order unless
``in_order=False``, where a task goes to the next worker that has room and a batch is given as it comes; every epoch
begins with empty queues. Moving a batch into pinned memory is taken to cost nothing: a recording does not tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unstall.model import thresholds
from unstall.model.machine import Machine, Mailbox, Thread
from unstall.model.work import Floats, Layout, Work


@dataclass(frozen=True)
class SimulatedTimeline:
    """When the loop took each batch and was done with it, and how long each server was at work, in seconds."""

    got: Floats
    done: Floats
    cores_busy_s: float
    """Core-seconds computed."""
    workers_busy_s: float
    """Seconds of all workers together."""
    aside_busy_s: float
    device_busy_s: float
    waited_s: float
    """Seconds that the main thread waited for a batch, or made it."""

    @property
    def duration_s(self) -> float:
        return float(self.done[-1])

    def batch_s(self, skip: int = 0) -> float:
        """Mean seconds between two batches done, the first ``skip`` left out."""
        return float(self.done[-1] - self.done[skip]) / (len(self.done) - 1 - skip)


def simulate(work: Work, layout: Layout) -> SimulatedTimeline:
    """Run every batch of the work through the layout."""
    program = _Program(work, layout)
    for thread in program.threads():
        program.machine.resume(thread)
    program.machine.run()
    return program.timeline()


class _Program:
    """The threads of the simulated program, as generators of what takes them time."""

    def __init__(self, work: Work, layout: Layout):
        self.machine = Machine(layout.cores, layout.background, layout.contention)
        # Lists: a number taken out of an array costs three times as much.
        self.work = {name: getattr(work, name).tolist() for name in Work.__dataclass_fields__}
        self.layout = layout
        self.batches = len(work)
        self.has_aside = bool(work.aside_cpu.any() or work.aside_wait.any())
        self.got, self.done = [0.0] * self.batches, [0.0] * self.batches
        self.inboxes = [Mailbox(self.machine) for _ in range(layout.workers)]
        self.arrived, self.aside, self.aside_done = (Mailbox(self.machine) for _ in range(3))
        self.is_ready = [False] * self.batches
        self.made_by = [0] * self.batches
        self.outstanding = [0] * layout.workers
        """Batches that each worker was asked for and that the loop has not taken."""
        self.sent = self.turn = self.epoch_ends = 0
        self.workers_busy = self.aside_busy = self.device_busy = self.waited = 0.0

    def threads(self) -> list[Thread]:
        """All of them; each waits where it has nothing to do."""
        return [*map(self.worker, self.inboxes), self.thread_aside(), self.main_thread()]

    def worker(self, inbox: Mailbox) -> Thread:
        cpu, wait, machine = self.work["service_cpu"], self.work["service_wait"], self.machine
        while True:
            while not inbox.items:
                yield inbox
            batch, began = inbox.items.popleft(), machine.now
            yield wait[batch], 0.0
            yield cpu[batch], 1.0
            self.workers_busy += machine.now - began
            self.is_ready[batch] = True
            self.arrived.put(batch)

    def main_thread(self) -> Thread:
        work, layout, machine = self.work, self.layout, self.machine
        device_done = [0.0] * self.batches
        for step in range(self.batches):
            if step == self.epoch_ends:
                yield layout.epoch_open_s + (layout.epoch_close_s if step else 0.0), 0.0
                self.begin_epoch(step)
            requested = machine.now
            if layout.workers:
                while not (self.is_ready[step] if layout.in_order else self.arrived.items):
                    yield self.arrived
                batch = step if layout.in_order else self.arrived.items.popleft()
                self.outstanding[self.made_by[batch]] -= 1
                self.hand_out()
                yield work["take_cpu"][batch], 1.0
            else:
                yield work["service_wait"][step], 0.0
                yield work["service_cpu"][step], 1.0
            self.got[step] = machine.now
            self.waited += machine.now - requested
            yield work["body_wait"][step], 0.0
            yield work["body_cpu"][step], 1.0
            yield work["body_wide"][step], layout.width
            # The device works through what it was given from the step's begin on, one batch after the other.
            device_done[step] = max(device_done[step - 1] if step else 0.0, self.got[step]) + work["device"][step]
            self.device_busy += work["device"][step]
            behind = step if layout.syncs else step - thresholds.DEVICE_AHEAD
            yield (device_done[behind] - machine.now if behind >= 0 else 0.0), 0.0
            if self.has_aside:
                while len(self.aside.items) >= thresholds.ASIDE_AHEAD:
                    yield self.aside_done
                self.aside.put(step)
            self.done[step] = machine.now

    def begin_epoch(self, first: int) -> None:
        self.epoch_ends = min(first + self.layout.epoch, self.batches) if self.layout.epoch else self.batches
        self.turn = 0
        for _ in range(self.layout.workers * self.layout.prefetch):
            self.hand_out()

    def hand_out(self) -> None:
        """Give the next task to the worker whose turn it is, if the epoch has one left."""
        if self.sent >= self.epoch_ends:
            return
        for _ in range(self.layout.workers):
            worker, self.turn = self.turn, (self.turn + 1) % self.layout.workers
            if self.layout.in_order or self.outstanding[worker] < self.layout.prefetch:
                task, self.sent = self.sent, self.sent + 1
                self.made_by[task] = worker
                self.outstanding[worker] += 1
                self.inboxes[worker].put(task)
                return

    def thread_aside(self) -> Thread:
        """What a thread of its own does after each batch."""
        while True:
            while not self.aside.items:
                yield self.aside
            step, began = self.aside.items[0], self.machine.now
            yield self.work["aside_wait"][step], 0.0
            yield self.work["aside_cpu"][step], 1.0
            self.aside_busy += self.machine.now - began
            self.aside.items.popleft()
            self.aside_done.wake()

    def timeline(self) -> SimulatedTimeline:
        return SimulatedTimeline(
            got=np.array(self.got),
            done=np.array(self.done),
            cores_busy_s=self.machine.busy,
            workers_busy_s=self.workers_busy,
            aside_busy_s=self.aside_busy,
            device_busy_s=self.device_busy,
            waited_s=self.waited,
        )

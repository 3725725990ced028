"""A discrete-event simulation of one training or inference loop, faithful to torch's DataLoader.

What torch 2.13 does, and this does after it (``torch/utils/data/dataloader.py``): batches are handed out as tasks, in
order to the workers in turn; a worker makes one batch at a time; at most workers times prefetch_factor tasks are
outstanding, and taking over a batch hands out the next; batches are given to the loop in order unless
``in_order=False``, where a task goes to the next worker that has room and a batch is given as it comes; with
``pin_memory`` one thread moves them in between; every epoch begins with empty queues.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from unstall.model.machine import Machine
from unstall.model.work import Floats, Layout, Work


@dataclass(frozen=True)
class Timeline:
    """When the loop took each batch and was done with it, and how long each server was at work, in seconds."""

    got: Floats
    done: Floats
    cores_busy_s: float
    """Core-seconds computed."""
    workers_busy_s: float
    """Of all workers together."""
    pin_busy_s: float
    aside_busy_s: float
    device_busy_s: float
    waited_s: float
    """Of the main thread, for a batch."""

    @property
    def duration_s(self) -> float:
        return float(self.done[-1])

    def batch_s(self, skip: int = 0) -> float:
        """Mean seconds between two batches done, the first ``skip`` left out."""
        return float(self.done[-1] - self.done[skip]) / (len(self.done) - 1 - skip)


def simulate(work: Work, layout: Layout) -> Timeline:
    """Run every batch of the work through the layout."""
    program = _Program(work, layout)
    program.machine.pause(layout.epoch_open_s, program.open_epoch, 0)
    program.machine.run()
    return program.timeline()


class _Program:
    """The threads of the simulated program. Its methods are what happens to a batch, by its number."""

    def __init__(self, work: Work, layout: Layout):
        self.machine = Machine(layout.cores, layout.background, layout.contention)
        self.layout = layout
        self.batches = len(work)
        # Lists: a number taken out of an array costs three times as much.
        self.service_cpu, self.service_wait = work.service_cpu.tolist(), work.service_wait.tolist()
        self.pin_cpu, self.take_cpu = work.pin_cpu.tolist(), work.take_cpu.tolist()
        self.body_cpu, self.body_wide = work.body_cpu.tolist(), work.body_wide.tolist()
        self.body_wait = work.body_wait.tolist()
        self.aside_cpu, self.aside_wait = work.aside_cpu.tolist(), work.aside_wait.tolist()
        self.device = work.device.tolist()
        self.has_aside = bool(work.aside_cpu.any() or work.aside_wait.any())
        self.got = [0.0] * self.batches
        self.done = [0.0] * self.batches
        self.epoch_begins, self.epoch_ends = 0, 0
        self.sent = self.taken = 0
        self.inbox: list[deque[int]] = [deque() for _ in range(layout.workers)]
        self.made_by = [0] * self.batches
        self.held = [0] * layout.workers
        """Batches that each worker was asked for and that the loop has not taken."""
        self.turn = 0
        self.to_pin: deque[int] = deque()
        self.ready: deque[int] = deque()
        self.is_ready = [False] * self.batches
        self.waiting: int | None = None
        self.asked = 0.0
        self.waited = 0.0
        self.make_began = [0.0] * self.batches
        self.pin_began = self.aside_began = 0.0
        self.workers_busy = self.pin_busy = self.aside_busy = self.device_busy = 0.0
        self.device_done = [0.0] * self.batches
        self.aside: deque[int] = deque()
        self.blocked_by_aside: int | None = None

    # ------------------------------------------------------------------ epochs

    def open_epoch(self, batch: int) -> None:
        self.epoch_begins = batch
        self.epoch_ends = min(batch + self.layout.epoch, self.batches) if self.layout.epoch else self.batches
        self.turn = 0
        for _ in range(self.layout.workers * self.layout.prefetch):
            self.send()
        self.ask(batch)

    def close_epoch(self, batch: int) -> None:
        gap = self.layout.epoch_close_s + self.layout.epoch_open_s
        self.machine.pause(gap, self.open_epoch, batch)

    # ----------------------------------------------------------------- workers

    def send(self) -> None:
        """Hand the next task to a worker, if the epoch has one left."""
        if self.sent >= self.epoch_ends or not self.layout.workers:
            return
        worker = self.next_worker()
        if worker is None:
            return
        task, self.sent = self.sent, self.sent + 1
        self.made_by[task] = worker
        self.held[worker] += 1
        self.inbox[worker].append(task)
        if len(self.inbox[worker]) == 1:
            self.make(task)

    def next_worker(self) -> int | None:
        """The worker whose turn it is; without order, the next one that has room."""
        workers = self.layout.workers
        for _ in range(workers):
            worker, self.turn = self.turn, (self.turn + 1) % workers
            if self.layout.in_order or self.held[worker] < self.layout.prefetch:
                return worker
        return None

    def make(self, batch: int) -> None:
        self.make_began[batch] = self.machine.now
        self.machine.pause(self.service_wait[batch], self.make_on_core, batch)

    def make_on_core(self, batch: int) -> None:
        self.machine.compute(self.service_cpu[batch], 1.0, self.made, batch)

    def made(self, batch: int) -> None:
        self.workers_busy += self.machine.now - self.make_began[batch]
        inbox = self.inbox[self.made_by[batch]]
        inbox.popleft()
        if inbox:
            self.make(inbox[0])
        if self.layout.pins:
            self.to_pin.append(batch)
            if len(self.to_pin) == 1:
                self.pin(batch)
        else:
            self.arrive(batch)

    def pin(self, batch: int) -> None:
        self.pin_began = self.machine.now
        self.machine.compute(self.pin_cpu[batch], 1.0, self.pinned, batch)

    def pinned(self, batch: int) -> None:
        self.pin_busy += self.machine.now - self.pin_began
        self.to_pin.popleft()
        if self.to_pin:
            self.pin(self.to_pin[0])
        self.arrive(batch)

    def arrive(self, batch: int) -> None:
        """A batch is there for the loop to take."""
        self.is_ready[batch] = True
        if not self.layout.in_order:
            self.ready.append(batch)
        if self.waiting is not None:
            place, self.waiting = self.waiting, None
            self.ask(place)

    # ------------------------------------------------------------- main thread

    def ask(self, place: int) -> None:
        """The loop asks for the batch of this place in the order of the loop."""
        if place >= self.taken:
            self.taken = place + 1
            self.asked = self.machine.now
        if not self.layout.workers:
            self.machine.pause(self.service_wait[place], self.make_here, place)
        elif self.layout.in_order and self.is_ready[place]:
            self.take(place, place)
        elif not self.layout.in_order and self.ready:
            self.take(place, self.ready.popleft())
        else:
            self.waiting = place

    def make_here(self, place: int) -> None:
        self.machine.compute(self.service_cpu[place], 1.0, self.start, place)

    def take(self, place: int, batch: int) -> None:
        self.held[self.made_by[batch]] -= 1
        self.send()
        self.machine.compute(self.take_cpu[batch], 1.0, self.start, place)

    def start(self, place: int) -> None:
        self.got[place] = self.machine.now
        self.waited += self.machine.now - self.asked
        self.machine.pause(self.body_wait[place], self.body, place)

    def body(self, place: int) -> None:
        self.machine.compute(self.body_cpu[place], 1.0, self.mathematics, place)

    def mathematics(self, place: int) -> None:
        self.machine.compute(self.body_wide[place], self.layout.width, self.submit, place)

    def submit(self, place: int) -> None:
        """The device works through what it was given from the step's begin on, one batch after the other."""
        previous = self.device_done[place - 1] if place else 0.0
        self.device_done[place] = max(previous, self.got[place]) + self.device[place]
        self.device_busy += self.device[place]
        if self.layout.syncs:
            free = self.device_done[place]
        else:
            behind = place - self.layout.run_ahead
            free = self.device_done[behind] if behind >= 0 else 0.0
        self.machine.pause(max(0.0, free - self.machine.now), self.hand_aside, place)

    def hand_aside(self, place: int) -> None:
        if not self.has_aside:
            self.finish(place)
        elif len(self.aside) >= self.layout.aside_ahead:
            self.blocked_by_aside = place
        else:
            self.aside.append(place)
            if len(self.aside) == 1:
                self.work_aside(place)
            self.finish(place)

    def finish(self, place: int) -> None:
        self.done[place] = self.machine.now
        following = place + 1
        if following >= self.batches:
            return
        if following == self.epoch_ends:
            self.close_epoch(following)
        else:
            self.ask(following)

    # ------------------------------------------------------------ thread aside

    def work_aside(self, place: int) -> None:
        self.aside_began = self.machine.now
        self.machine.pause(self.aside_wait[place], self.work_aside_on_core, place)

    def work_aside_on_core(self, place: int) -> None:
        self.machine.compute(self.aside_cpu[place], 1.0, self.worked_aside, place)

    def worked_aside(self, place: int) -> None:
        self.aside_busy += self.machine.now - self.aside_began
        self.aside.popleft()
        if self.aside:
            self.work_aside(self.aside[0])
        if self.blocked_by_aside is not None:
            place, self.blocked_by_aside = self.blocked_by_aside, None
            self.hand_aside(place)

    def timeline(self) -> Timeline:
        return Timeline(
            got=np.array(self.got),
            done=np.array(self.done),
            cores_busy_s=self.machine.busy,
            workers_busy_s=self.workers_busy,
            pin_busy_s=self.pin_busy,
            aside_busy_s=self.aside_busy,
            device_busy_s=self.device_busy,
            waited_s=self.waited,
        )

"""A recorded run as a pipeline: who does what for how long, ready to be changed and simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from unstall.model import thresholds
from unstall.model.function_shares import FunctionShares
from unstall.model.machine import rates, speed
from unstall.model.work import Floats, Layout, Work
from unstall.records.vocabulary import MODEL_PHASES

MODEL = MODEL_PHASES
"""Phases whose mathematics the intra-op threads of torch share out."""


@dataclass(frozen=True, eq=False)
class Pipeline:
    """Times are seconds. Rows of ``compute`` and ``wait`` are recorded steps, and belong together."""

    layout: Layout
    phases: tuple[str, ...]
    """Phases of the main thread, the wait for data left out."""
    compute: Floats
    """Seconds of computing by step and phase when alone on the machine, shape (steps, phases)."""
    wait: Floats
    """Seconds on no core; same shape. In the model's phases: that a team of threads waited for one without a core."""
    service: Floats = field(default_factory=lambda: np.zeros((1, 2)))
    """What each batch takes to make: seconds of computing, and on no core; shape (batches, 2)."""
    has_loader: bool = False
    ship_s: float = thresholds.SHIP_S
    take_s: float = thresholds.TAKE_S
    collate_share: float = 0.0
    """Share of the time to make a batch that collating takes."""
    device_s: float = 0.0
    """Work of an asynchronous device for a step."""
    on_device: bool = False
    batches_per_step: float = 1.0
    persistent_workers: bool = False
    threads: int = 1
    aside: frozenset[str] = frozenset()
    """Phases that a thread of their own does."""
    measured_s: float = 0.0
    """The recorded mean step."""
    spread: float = 0.0
    """Its relative standard error."""
    function_shares: FunctionShares = field(default_factory=FunctionShares)
    closing: Mapping[str, float] = field(default_factory=dict)
    """Shares of ``layout.epoch_close_s`` by phase: what the steps between epochs, or with validation, take longer."""
    refetch_s: float | None = None
    """What a line of memory costs a step after it was last touched, where that was measured."""
    busy_seen: float = 1.0
    """Cores that were busy while a batch was made or a step computed, when it was recorded."""

    def phase_s(self, name: str) -> float:
        """Mean seconds of a phase when alone on the machine; 0 where there is none."""
        if name not in self.phases:
            return 0.0
        index = self.phases.index(name)
        return float((self.compute[:, index] + self.wait[:, index]).mean())

    @property
    def service_s(self) -> float:
        """Mean seconds to make a batch when alone on the machine."""
        return float(self.service.sum(axis=1).mean())

    @property
    def makes_batches(self) -> bool:
        """Whether the main thread makes the loader's batches itself."""
        return self.has_loader and not self.layout.workers

    @property
    def making_s(self) -> float:
        """Seconds a step in which the main thread makes the loader's batches."""
        return self.service_s * self.batches_per_step if self.makes_batches else 0.0

    @property
    def wide(self) -> tuple[str, ...]:
        """Phases on several cores at once."""
        return () if self.on_device or self.layout.width <= 1 else MODEL

    def body_rates(self, contention: float) -> Floats:
        """By phase: seconds of computing alone in a recorded second, with no worker beside the main thread.

        It has its own team of threads and other programs beside it, and the simulation will slow it down by them.
        """
        layout = self.layout
        thread, _ = rates(1 + layout.background, 0.0, layout.cores, contention)
        _, team = rates(layout.width + layout.background, layout.width, layout.cores, contention)
        return np.where(np.isin(self.phases, self.wide), team, thread)

    def with_contention(self, contention: float) -> Pipeline:
        """The same recording read as that of a machine whose busy cores slow each other down so much."""
        cores, before = self.layout.cores, self.layout.contention
        factor = speed(self.busy_seen, cores, contention) / speed(self.busy_seen, cores, before)
        body = factor if self.layout.workers else self.body_rates(contention) / self.body_rates(before)
        return replace(
            self,
            layout=replace(self.layout, contention=contention),
            compute=self.compute * body,
            service=self.service * np.array([factor, 1.0]),
        )

    def scale_service(self, factor: float) -> Pipeline:
        """Batches that take so many times as long to make."""
        return replace(self, service=self.service * factor)

    def scale_phase(self, name: str, factor: float) -> Pipeline:
        """A phase that takes so many times as long."""
        column = np.where(np.array(self.phases) == name, factor, 1.0)
        return replace(self, compute=self.compute * column, wait=self.wait * column)

    def scale_place(self, name: str, factor: float) -> Pipeline:
        """A phase that takes so many times as long, between epochs too."""
        left = 1 - self.closing.get(name, 0.0) * (1 - factor)
        layout = replace(self.layout, epoch_close_s=self.layout.epoch_close_s * left)
        after = {phase: share * (factor if phase == name else 1.0) for phase, share in self.closing.items()}
        closing = {phase: share / left for phase, share in after.items()} if left > 0 else {}
        return replace(self.scale_phase(name, factor), layout=layout, closing=closing)

    def draw(self, batches: int, seed: int = 0) -> Work:
        """Work for so many batches, steps and batches drawn from the recorded ones, with replacement.

        The same seed draws the same of a changed pipeline, so that two predictions differ by the change alone.
        """
        random = np.random.default_rng(seed)
        rows = random.random(batches)
        served = random.random(batches)
        compute = self.compute[(rows * len(self.compute)).astype(int)] / self.batches_per_step
        wait = self.wait[(rows * len(self.wait)).astype(int)] / self.batches_per_step
        service = self.service[(served * len(self.service)).astype(int)]
        names = np.array(self.phases)
        aside = np.isin(names, list(self.aside))
        wide = np.isin(names, self.wide) & ~aside
        workers = self.layout.workers > 0
        return Work(
            service_cpu=service[:, 0] + (self.ship_s if workers else 0.0),
            service_wait=service[:, 1],
            take_cpu=np.full(batches, self.take_s if workers else 0.0),
            body_cpu=compute[:, ~aside & ~wide].sum(axis=1),
            body_wide=compute[:, wide].sum(axis=1),
            body_wait=wait[:, ~aside].sum(axis=1),
            aside_cpu=compute[:, aside].sum(axis=1),
            aside_wait=wait[:, aside].sum(axis=1),
            device=np.full(batches, self.device_s / self.batches_per_step),
        )

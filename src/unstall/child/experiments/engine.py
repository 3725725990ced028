"""In the user's processes: puts the condition that the parent wants in force, at a seam of the main thread.

Loaded as an extension of the recorder's child (``Options.extensions``). Standard library only; never raises into the
program. Loader workers apply the same condition between two batches.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstall.child import allocator, device, recording
from unstall.child.experiments import limits, loading
from unstall.child.experiments.interventions.base import Intervention, Specification, key_of, load
from unstall.child.experiments.switchboard import Switchboard
from unstall.child.recording import steps_of
from unstall.child.tap import Tap

if TYPE_CHECKING:
    from unstall.child.main import Child, Targets


class Engine:
    """What one process of the program does about the conditions."""

    def __init__(self, child: Child, collecting_s: float = limits.COLLECTING_S):
        """``collecting_s``: for how long a call site's answers are recorded before it is answered for."""
        self.child, self.collecting_s = child, collecting_s
        self.board = Switchboard(child.directory)
        self.generation = 0
        self.known: dict[str, Intervention] = {}
        """Interventions by specification, those off included: what they have recorded serves again."""
        self.on: list[Intervention] = []
        self.loading = loading.Loading()
        self.in_main = True
        self._tap: Tap | None = None

    def on_control(self, seam: str) -> None:
        """The parent asks the main process to read the board; with several ranks, at a certain step of each."""
        try:
            generation, condition = self.board.read()
            if self.steps() < condition.get("at", 0):
                return
            recording.native.control(0)
            device.wait()  # what was submitted so far is the earlier condition's
            self.put_in_force(generation, condition)
            self.board.applied(generation)
        except Exception as error:
            recording.native.control(0)
            self.child.emit_fact("problem", problem=f"the condition could not be put in force: {error!r}")

    def steps(self) -> int:
        """This process's steps so far, as the parent counts them; 0 in a loader worker."""
        if not self.in_main:
            return 0
        if self._tap is None:
            self._tap = Tap(Path(self.child.directory) / f"rec-{os.getpid()}.bin")
        return steps_of(self._tap.ticks)

    def poll(self) -> None:
        """Read the board in a loader worker, between two batches."""
        if self.board.generation != self.generation:
            try:
                self.put_in_force(*self.board.read())
            except Exception as error:
                self.child.emit_fact("problem", problem=f"the condition could not be put in force: {error!r}")

    def put_in_force(self, generation: int, condition: dict[str, Any]) -> None:
        """Switch off what is not wanted any more, switch on what is; one that fails is reported and left off."""
        self.generation = generation
        wanted = {key_of(spec): spec for spec in condition.get("interventions", ())}
        for intervention in self.on:
            if intervention.key not in wanted:
                intervention.off()
        on = [intervention for intervention in self.on if intervention.key in wanted]
        if len(on) < len(self.on):
            for intervention in on:
                intervention.restore()
        running = {intervention.key for intervention in on}
        for key, spec in wanted.items():
            if key not in running and (started := self._switch_on(key, spec)) is not None:
                on.append(started)
        self.on = on

    def _switch_on(self, key: str, spec: Specification) -> Intervention | None:
        try:
            intervention = self.known.get(key)
            if intervention is None:
                intervention = self.known[key] = load(spec["class"])(self, key, spec)
            intervention.on()
            return intervention
        except Exception as error:
            self.emit("intervention", key=key, what="problem", text=f"{type(error).__name__}: {error}")
            return None

    def emit(self, kind: str, **facts: Any) -> None:
        """Write a line of facts for the parent, with the process it is from."""
        self.child.emit_fact(kind, process=os.getpid(), main=self.in_main, **facts)

    def after_fork(self) -> None:
        self.in_main = False
        self._tap = None


def install(child: Child) -> Targets:
    """Called by the child before the seams are installed."""
    engine = Engine(child)
    engine.in_main = "--multiprocessing-fork" not in sys.orig_argv
    child.on_control = engine.on_control
    child.on_fork = engine.after_fork
    settings = child.options.get("settings", {})
    targets = loading.targets(engine, settings)
    if settings.get("keep_freed_memory"):
        targets["torch"] = [lambda module: allocator.keep_freed()]
    return targets

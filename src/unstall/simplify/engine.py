"""In the user's processes: puts the condition that the parent wants in force, at a seam of the main thread.

Loaded as an extension of the recorder's child (``Options.extensions``). Standard library only; never raises into the
program. Loader workers apply the same condition between two batches.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstall.child import recording
from unstall.child.recording import steps_of
from unstall.child.tap import Tap
from unstall.simplify import loading
from unstall.simplify.interventions.base import Intervention, key_of
from unstall.simplify.switchboard import Switchboard

if TYPE_CHECKING:
    from unstall.child.main import Child, Targets


class Engine:
    """What one process of the program does about the conditions."""

    def __init__(self, child: Child):
        self.child = child
        self.board = Switchboard(child.directory)
        self.generation = 0
        self.known: dict[str, Intervention] = {}
        """By specification, those off included: what they have recorded serves again."""
        self.on: list[Intervention] = []
        self.loading = loading.Loading(self)
        self.in_main = True
        self._tap: Tap | None = None

    def hear(self, seam: str) -> None:
        """The parent asks the main process to look at the board; with several ranks, at a certain step of each."""
        try:
            generation, condition = self.board.read()
            if self._steps() < condition.get("at", 0):
                return
            recording.native.control(0)
            self.put_in_force(generation, condition)
            self.board.applied(generation)
        except Exception as error:
            recording.native.control(0)
            self.child.tell("problem", problem=f"the condition could not be put in force: {error!r}")

    def _steps(self) -> int:
        """This process's steps so far, as the parent counts them."""
        if self._tap is None:
            self._tap = Tap(Path(self.child.directory) / f"rec-{os.getpid()}.bin")
        return steps_of(self._tap.ticks)

    def look(self) -> None:
        """In a loader worker, between two batches."""
        if self.board.generation != self.generation:
            try:
                self.put_in_force(*self.board.read())
            except Exception as error:
                self.child.tell("problem", problem=f"the condition could not be put in force: {error!r}")

    def put_in_force(self, generation: int, condition: dict[str, Any]) -> None:
        """Switch off what is not wanted any more, switch on what is; one that fails is told and left off."""
        self.generation = generation
        wanted = {key_of(spec): spec for spec in condition.get("interventions", ())}
        for one in self.on:
            if one.key not in wanted:
                one.off()
        on = [one for one in self.on if one.key in wanted]
        if len(on) < len(self.on):
            for one in on:
                one.restore()
        for key, spec in wanted.items():
            if any(one.key == key for one in on):
                continue
            one = self.known.get(key) or self._make(key, spec)
            try:
                one.on()
                on.append(one)
            except Exception as error:
                one.problem(f"{type(error).__name__}: {error}")
        self.on = on

    def _make(self, key: str, spec: dict[str, Any]) -> Intervention:
        module = importlib.import_module(f"unstall.simplify.interventions.{spec['kind']}")
        made: Intervention = module.Here(self, key, spec)
        self.known[key] = made
        return made

    def tell(self, kind: str, **facts: Any) -> None:
        """A line of facts for the parent, with the process it is from."""
        self.child.tell(kind, process=os.getpid(), main=self.in_main, **facts)

    def after_fork(self) -> None:
        self.in_main = False
        self._tap = None


def install(child: Child) -> Targets:
    """Called by the child before the seams are installed."""
    engine = Engine(child)
    engine.in_main = "--multiprocessing-fork" not in sys.orig_argv
    child.on_control = engine.hear
    child.on_fork = engine.after_fork
    return loading.targets(engine, child.options.get("settings", {}))

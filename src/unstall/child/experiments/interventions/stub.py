"""A function of the user's answers with what it returned before, in whichever process it runs."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from unstall.child.experiments import arguments, functions, limits, replay
from unstall.child.experiments.interventions.base import Specification
from unstall.child.experiments.interventions.replacing import ReplacingIntervention


class StubIntervention(ReplacingIntervention):
    """``name="Photos.decode", file=None``. The first calls of each call site are let through and recorded."""

    name = "stub"
    answers = limits.ANSWERS
    gave_up = False

    @classmethod
    def what_if(cls, spec: Specification) -> dict[str, Any] | None:
        """The function free; of a module's ``forward`` nothing, since its backward goes with it."""
        return None if spec["name"].endswith(".forward") else {"scales": {spec["name"]: 0.0}}

    def refuses(self, function: FunctionType) -> str | None:
        return functions.why_not(function)

    def stand_in(self) -> functions.StandIn:
        ring_at, frame_of = replay.Sites(self._new_ring).ring, sys._getframe

        def stand_in(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            ring = ring_at(frame_of(functions.TRAMPOLINE).f_back)
            if ring.ready and not self.gave_up:
                return ring.answer(args, kwargs)
            return self._let_through(original, ring, args, kwargs)

        return stand_in

    def _new_ring(self) -> replay.Ring:
        return replay.Ring(self.answers, self.engine.collecting_s)

    def _let_through(self, original: Any, ring: replay.Ring, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.engine.board.count_real_call()
        before = arguments.state(args, kwargs)
        value = original(*args, **kwargs)
        changed = arguments.changed(before, args, kwargs, original)
        if changed:
            self._give_up(f"it changes its argument {changed}")
        else:
            try:
                ring.record(value)
            except replay.CannotReplay as error:
                self._give_up(str(error))
        return value

    def _give_up(self, why: str) -> None:
        """Let every call through from here on, and tell the parent."""
        self.gave_up = True
        self.emit("problem", why)


INTERVENTION = StubIntervention

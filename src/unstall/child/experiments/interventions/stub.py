"""A function of the user's answers with what it returned before, in whichever process it runs."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

from unstall.child.experiments import arguments, functions, limits, replay
from unstall.child.experiments.interventions.base import Specification
from unstall.child.experiments.interventions.replacing import ReplacingIntervention

if TYPE_CHECKING:
    from collections.abc import Callable

    from unstall.child.experiments.engine import Engine


class StubIntervention(ReplacingIntervention):
    """``name="Photos.decode", file=None``. The first calls of each call site are let through and recorded."""

    name = "stub"
    answers = limits.ANSWERS
    gave_up = False

    def __init__(self, engine: Engine, key: str, spec: Specification):
        super().__init__(engine, key, spec)
        self._rings: list[replay.Ring] = []
        self._at_first = (0.0, 0)

    @classmethod
    def what_if(cls, spec: Specification) -> dict[str, Any] | None:
        """The function free; of a module's ``forward`` nothing, since its backward goes with it."""
        return None if spec["name"].endswith(".forward") else {"scales": {spec["name"]: 0.0}}

    def refuses(self, function: FunctionType) -> str | None:
        return functions.why_not(function)

    def on(self) -> None:
        super().on()
        self._at_first = self._answered_s(), self.engine.steps()

    def off(self) -> None:
        """Tell the parent, too, what the answers took: of a function that is free it would be nothing."""
        super().off()
        seconds, steps = self._answered_s() - self._at_first[0], self.engine.steps() - self._at_first[1]
        if steps > 0 and seconds > 0:
            self.engine.emit("intervention", key=self.key, what="answered", seconds=seconds, steps=steps)

    def _answered_s(self) -> float:
        """Seconds of the program's so far that answers took, about."""
        return sum(ring.own_s * ring.answered for ring in self._rings)

    def stand_in(self) -> functions.StandIn:
        return self._answering(replay.Sites(self._new_ring).ring)

    def _answering(self, ring_at: Callable[[Any], replay.Ring]) -> functions.StandIn:
        """``ring_at``: the ring of the call site that a frame stands at."""
        frame_of = sys._getframe

        def stand_in(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            ring = ring_at(frame_of(functions.TRAMPOLINE).f_back)
            if ring.ready and not self.gave_up:
                return ring.answer(args, kwargs)
            return self._let_through(original, ring, args, kwargs)

        return stand_in

    def _new_ring(self) -> replay.Ring:
        self._rings.append(replay.Ring(self.answers, self.engine.collecting_s))
        return self._rings[-1]

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
            else:
                if ring.ready:
                    self._time(ring, args, kwargs)
        return value

    def _time(self, ring: replay.Ring, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Measure what an answer takes, by calls like the program's."""

        def called(*args: Any, **kwargs: Any) -> Any:
            """Something that a stand-in can be put in the place of."""

        functions.Replacement(cast("FunctionType", called), self._answering(lambda frame: ring)).on()
        ring.time(lambda: called(*args, **kwargs))

    def _give_up(self, why: str) -> None:
        """Let every call through from here on, and tell the parent."""
        self.gave_up = True
        self.emit("problem", why)


INTERVENTION = StubIntervention

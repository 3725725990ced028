"""A function of the user's answers with what it returned before, in whichever process it runs."""

from __future__ import annotations

import sys
from time import perf_counter
from types import FunctionType
from typing import TYPE_CHECKING, Any

from unstall.simplify import arguments, functions, replay
from unstall.simplify.interventions.swapping import Swapping

if TYPE_CHECKING:
    from collections.abc import Callable


class Here(Swapping):
    """``{"kind": "stub", "name": "Photos.decode", "file": None}``. A call site's first calls are let through."""

    new_ring: Callable[[], replay.Ring] = replay.Ring
    """A call site's record, when it is met for the first time."""
    gave_up = False

    def refuses(self, function: FunctionType) -> str | None:
        return functions.why_not(function)

    def stand_in(self) -> Any:
        ring_at, frame_of = replay.Sites(self.new_ring).ring, sys._getframe

        def stand_in(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            ring = ring_at(frame_of(functions.TRAMPOLINE).f_back)
            if ring.ready and not self.gave_up:
                return ring.answer(args, kwargs)
            return self._let_through(original, ring, args, kwargs)

        return stand_in

    def _let_through(self, original: Any, ring: replay.Ring, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.engine.board.count_real_call()
        before = arguments.state(args, kwargs)
        began = perf_counter()
        value = original(*args, **kwargs)
        seconds = perf_counter() - began
        changed = arguments.changed(before, args, kwargs, original)
        if changed:
            self._give_up(f"it changes its argument {changed}")
        else:
            try:
                ring.record(value, seconds)
            except replay.CannotReplay as error:
                self._give_up(str(error))
        return value

    def _give_up(self, why: str) -> None:
        """From here on every call is let through, and the parent is told."""
        self.gave_up = True
        self.problem(why)

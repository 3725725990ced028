"""How long a function takes, to the microsecond: stack samples tell its share of a step only within some per cent.

Nothing of the program changes. Where a function is nearly all of a step, a prediction of the rest hangs on this.
"""

from __future__ import annotations

import threading
from time import monotonic
from types import FunctionType
from typing import Any

from unstall.simplify import functions
from unstall.simplify.interventions.swapping import Swapping

_TRIES = 2000
_BINS_PER_S = 500
"""Calls are told by the time of their end, and added up within this: of thousands in a step not each by itself."""


class Here(Swapping):
    """``{"kind": "timed", "name": "Photos.decode"}``: calls of the main thread; told when it is switched off.

    The fact ``timed`` has ``bins``, lists of the time of the first call's end (monotonic seconds), the seconds of all
    and their number; and ``overhead``, what timing adds to a call.
    """

    bins: list[list[float]]

    def on(self) -> None:
        self.bins = []
        super().on()

    def off(self) -> None:
        super().off()
        if self.swapped:
            bins = self.bins
            inside, around = self._cost()
            bins = [[end, max(0.0, seconds - calls * inside), calls] for end, seconds, calls in bins]
            self.engine.tell("timed", key=self.key, bins=bins, overhead=around)

    def stand_in(self) -> Any:
        main, thread = threading.main_thread().ident, threading.get_ident
        is_inside, current = False, -1

        def stand_in(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            nonlocal is_inside, current
            if is_inside or thread() != main:  # of recursion, the outermost call
                return original(*args, **kwargs)
            is_inside = True
            began = monotonic()
            try:
                return original(*args, **kwargs)
            finally:
                ended = monotonic()
                if int(ended * _BINS_PER_S) != current or not self.bins:
                    current = int(ended * _BINS_PER_S)
                    self.bins.append([ended, 0.0, 0])
                last = self.bins[-1]
                last[1] += ended - began
                last[2] += 1
                is_inside = False

        return stand_in

    def _cost(self) -> tuple[float, float]:
        """Seconds that timing adds to a call: those that count as the function's own, and all."""

        def nothing() -> None:
            pass

        plain = _seconds(nothing)
        assert isinstance(nothing, FunctionType)
        swapped = functions.Swapped(nothing, self.stand_in())
        self.bins = []
        swapped.on()
        around = _seconds(nothing)
        inside = sum(seconds for _, seconds, _ in self.bins) / _TRIES
        return max(0.0, inside - plain), max(0.0, around - plain)


def _seconds(function: Any) -> float:
    """Of a call."""
    began = monotonic()
    for _ in range(_TRIES):
        function()
    return (monotonic() - began) / _TRIES

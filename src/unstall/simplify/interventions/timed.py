"""How long a function takes, to the microsecond: stack samples tell its share of a step only within some per cent.

Nothing of the program changes. Where a function is nearly all of a step, a prediction of the rest hangs on this.
"""

from __future__ import annotations

import sys
import threading
from time import monotonic
from types import FunctionType
from typing import Any

from unstall.simplify import functions, replay
from unstall.simplify.backpropagation import Backpropagation
from unstall.simplify.interventions.swapping import Swapping

_TRIES = 2000
_ANSWERS = 20
_BINS_PER_S = 500
"""Calls are told by the time of their end, and added up within this: of thousands in a step not each by itself."""


class Here(Swapping):
    """``{"kind": "timed", "name": "Photos.decode"}``: calls of the main thread; told when it is switched off.

    The fact ``timed`` has

    - ``bins``, lists of the time of the first call's end (monotonic seconds), the seconds of all and their number;
    - ``overhead``, what timing adds to a call, and ``answer``, what it takes to give an answer from a record;
    - ``backward``, lists of the time at which backward left a function whose answers gradients flow through, and the
      seconds inside; ``zeros``, the seconds that zeros for all gradients of its parameters would have taken.
    """

    bins: list[list[float]]
    backward: list[list[float]]
    inside: Backpropagation
    following_s: float
    """Spent on following answers to their gradients."""
    last: Any = None
    """An answer, unless one that a graph hangs on."""

    def on(self) -> None:
        self.bins, self.backward, self.following_s = [], [], 0.0
        self.inside = Backpropagation(lambda left, seconds: self.backward.append([left, seconds]))
        super().on()

    def off(self) -> None:
        super().off()
        if self.swapped:
            zeros_s = self.inside.close()
            bins, following_s = self.bins, self.following_s
            answer_s, self.last = _answer_s(self.last), None
            inside, around = self._cost()
            calls = sum(one[2] for one in bins)
            bins = [[end, max(0.0, seconds - calls * inside), calls] for end, seconds, calls in bins]
            self.engine.tell(
                "timed",
                key=self.key,
                bins=bins,
                overhead=around + (following_s / calls if calls else 0.0),
                answer=answer_s,
                backward=self.backward,
                zeros=zeros_s,
            )

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
                answer = original(*args, **kwargs)
            finally:
                ended = monotonic()
                if int(ended * _BINS_PER_S) != current or not self.bins:
                    current = int(ended * _BINS_PER_S)
                    self.bins.append([ended, 0.0, 0])
                last = self.bins[-1]
                last[1] += ended - began
                last[2] += 1
                is_inside = False
            if type(answer) not in replay.PLAIN and "torch" in sys.modules:
                hangs = self.inside.follow(answer, args, kwargs)
                self.last = None if hangs else answer
                self.following_s += monotonic() - ended
            else:
                self.last = answer
            return answer

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


def _seconds(function: Any, tries: int = _TRIES) -> float:
    """Of a call."""
    began = monotonic()
    for _ in range(tries):
        function()
    return (monotonic() - began) / tries


def _answer_s(value: Any) -> float:
    """Seconds to give such an answer from a record, beyond one that is given as it is; 0 for one that cannot be."""
    try:
        answer = replay.Answer(value)
        return 0.0 if answer.is_free else _seconds(lambda: answer.give((), {}), _ANSWERS)
    except Exception:  # a stub will say why it cannot be kept or copied; timing goes on
        return 0.0

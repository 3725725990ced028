"""How cold a function leaves the caches: what the rest of the step loses by it, beyond its own time.

A canary, a memory of about the size that small models use, is read before a call and after it. How much longer the
second reading takes, between warm and cold, is the share of the caches that the call has emptied: on this machine, in
this hour, with what the function itself touches. Two functions of the same duration differ tenfold in it.
"""

from __future__ import annotations

import random
import statistics
import threading
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from unstall.simplify.interventions.swapping import Swapping

_FLOAT_BYTES = 32  # itself, and its place in the list
_FLUSH = 32 << 20
_PAUSE_S = 0.01
"""Between readings, on average: each empties the program's own caches a little."""


class Here(Swapping):
    """``{"kind": "cooling", "name": "Photos.decode", "step_s": 0.02, "bytes": 1 << 20}``; told when it is switched off.

    ``step_s``: about what all calls of a step take. ``bytes``: the canary's size.
    """

    canary: Sequence[float] = ()
    warm: list[float]
    """Seconds of the second of two readings in a row."""
    after_call: list[float]
    after_step: list[float]

    def on(self) -> None:
        canary = [float(number) for number in range(self.spec["bytes"] // _FLOAT_BYTES)]
        random.Random(0).shuffle(canary)  # in this order no prefetcher helps
        self.canary = canary
        self.warm, self.after_call, self.after_step = [], [], []
        super().on()

    def off(self) -> None:
        super().off()
        if self.swapped and self.warm:
            flush = bytearray(b"\1") * _FLUSH
            cold = statistics.median(self._cold(flush) for _ in range(5))
            warm = statistics.median(self.warm)
            self.engine.tell(
                "cooling",
                key=self.key,
                by_call=_emptied(self.after_call, warm, cold),
                by_step=_emptied(self.after_step, warm, cold),
            )
        self.canary = ()

    def stand_in(self) -> Any:
        main, thread = threading.main_thread().ident, threading.get_ident
        is_inside, pause_until, of_step, spent = False, 0.0, False, -1.0
        step_s, chance = 0.8 * float(self.spec["step_s"]), random.Random(1)

        def stand_in(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            nonlocal is_inside, pause_until, of_step, spent
            if is_inside or thread() != main or (spent < 0 and perf_counter() < pause_until):
                return original(*args, **kwargs)
            is_inside = True
            if spent < 0:
                self._read()
                self.warm.append(self._read())
                spent, of_step = 0.0, chance.random() < 0.5  # in turn they could always meet the same calls
            began = perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                spent += perf_counter() - began
                if not of_step:
                    self.after_call.append(self._read())
                elif spent >= step_s:
                    self.after_step.append(self._read())
                if not of_step or spent >= step_s:
                    spent, pause_until = -1.0, perf_counter() + 2 * _PAUSE_S * chance.random()
                is_inside = False

        return stand_in

    def _read(self) -> float:
        """Seconds to read the canary."""
        began = perf_counter()
        sum(self.canary)
        return perf_counter() - began

    def _cold(self, flush: bytearray) -> float:
        """The same after so much else was read: writing alone may pass the caches by."""
        self._read()
        flush.count(0)
        return self._read()


def _emptied(readings: list[float], warm: float, cold: float) -> float | None:
    """How far the readings are from warm to cold, 0 to 1, on average: of some functions few calls do much."""
    if not readings or cold <= warm:
        return None
    return statistics.fmean(min(1.0, max(0.0, (reading - warm) / (cold - warm))) for reading in readings)

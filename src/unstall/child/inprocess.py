"""Stack samples from a thread inside the program: the fallback where py-spy may not attach.

It needs the GIL, so it sees the program only where the GIL is let go, and its shares are skewed towards such places:
reports say so. Runs in the user's process: standard library only.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from unstall.child.reading import line_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_PERIOD_S = 0.01
_WINDOW_S = 1.0
_PAUSE_S = 1.0
_WINDOWS = 12
_MAX_FRAMES = 60


class InProcessSampler:
    """Samples the main thread in windows; ``emit_fact("samples", stacks=[[frames, count], ...])`` after each."""

    def __init__(
        self,
        emit_fact: Callable[..., None],
        *,
        windows: int = _WINDOWS,
        window_s: float = _WINDOW_S,
        pause_s: float = _PAUSE_S,
        period_s: float = _PERIOD_S,
    ):
        self.emit_fact = emit_fact
        self._windows, self._window_s, self._pause_s, self._period_s = windows, window_s, pause_s, period_s
        self._thread = threading.Thread(target=self._run, name="unstall sampler", daemon=True)

    def start(self) -> None:
        """Begin; the thread ends by itself after its windows."""
        self._thread.start()

    def _run(self) -> None:
        main = threading.main_thread().ident
        for _ in range(self._windows):
            stacks: Counter[tuple[Any, ...]] = Counter()
            began = time.monotonic()
            while time.monotonic() - began < self._window_s:
                time.sleep(self._period_s)
                stack = _stack(sys._current_frames().get(main or 0))
                if stack:
                    stacks[stack] += 1
            self.emit_fact(
                "samples",
                pid=os.getpid(),
                began=began,
                ended=time.monotonic(),
                stacks=[[list(stack), count] for stack, count in stacks.items()],
            )
            time.sleep(self._pause_s)


def _stack(frame: FrameType | None) -> tuple[tuple[str, str, int], ...]:
    """(function, file, line) of each frame, outermost first.

    No name outside holds a frame while the sampler sleeps: it would keep alive what the function's variables held.
    """
    frames: list[tuple[str, str, int]] = []
    while frame is not None and len(frames) < _MAX_FRAMES:
        frames.append((frame.f_code.co_name, frame.f_code.co_filename, line_of(frame)))
        frame = frame.f_back
    return tuple(reversed(frames))

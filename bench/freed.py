"""How much faster a program of the zoo is with its culprit made free by hand (free.py): the truth for a ceiling."""

from __future__ import annotations

import math
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scipy import stats

FREE = Path(__file__).with_name("free.py")
_STUBBABLE = ("input-bound", "host-bound", "callback-bound", "environment-bound")
_NOT_A_FUNCTION = ("single_env", "worker_restart")  # batching and settings: nothing to stub
_LIMIT_S = 600


def stubbable(case: Any) -> bool:
    """Whether the case's culprit is a function of the program's own that can answer from a record."""
    return case.pattern in _STUBBABLE and case.name not in _NOT_A_FUNCTION and bool(case.culprit)


def log_ratios(culprit: str, words: Sequence[str]) -> list[float]:
    """Logarithms of steps a second without the culprit over those with it, one for each turn without it.

    Args:
        culprit: function of the program, ``name`` or ``Class.name``.
        words: the program's command line, without Python in front.
    """
    with tempfile.TemporaryDirectory() as folder:
        line = [sys.executable, str(FREE), culprit, *words]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=_LIMIT_S)
    found = re.search(r"log_free_over_slow=(\S+)", done.stdout)
    if not found:
        print(done.stdout[-500:], done.stderr[-1000:], file=sys.stderr)
        return []
    return [float(value) for value in found[1].split(",")]


def ratio(logs: Sequence[float]) -> tuple[float, float, float] | tuple[None, None, None]:
    """The mean ratio with the ends of its interval of 95 %, by Student's t; None for fewer than two."""
    if len(logs) < 2:
        return None, None, None
    mean = statistics.mean(logs)
    half = stats.t.ppf(0.975, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)

"""no-verdict: no step was seen, so nothing can be said: neither that the program is healthy, nor what stalls it."""

from __future__ import annotations

from unstall.diagnose.patterns.base import Pattern


class NoVerdict(Pattern):
    """Matches nothing: reports of runs without a step, and of traces without a device, carry its name."""

    name = "no-verdict"
    brief = "no step was seen, so nothing can be said"


PATTERN = NoVerdict()

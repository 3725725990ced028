"""The environment answers each step with one it gave before: observation, reward and whether the episode ended."""

from __future__ import annotations

import functools

from unstall.simplify import replay
from unstall.simplify.interventions import stub


class Here(stub.Here):
    """``{"kind": "env", "name": "env"}``. Many answers are kept, so that episodes end about as often as they did."""

    new_ring = functools.partial(replay.Ring, 32)

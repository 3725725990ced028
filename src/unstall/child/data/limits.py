"""How the time in the user's program is spent, and how much is kept there: each value, its unit, and its reason.

Standard library only.
"""

from __future__ import annotations

from typing import Annotated

Budget = Annotated[float, "share of the budget"]

READING: Annotated[Budget, "samples one after the other"] = 0.12
TRACING: Annotated[Budget, "samples under the profile hook, twice: to see what there is, and to keep arguments"] = 0.06
REPLAYING: Annotated[Budget, "all stages by themselves"] = 0.2
COLLECTING: Annotated[Budget, "samples for a batch"] = 0.15
COLLATING: Annotated[Budget, "the batch made of them, again and again"] = 0.03
LOADING: Annotated[Budget, "the whole loader with all numbers of workers"] = 0.3
PATIENCE: Annotated[float, "times the budget", "after which nothing new is begun"] = 1.3

TRACED_SAMPLES: Annotated[int, "samples", "each time under the hook, which makes Python several times as slow"] = 64
LEAST_SHARE: Annotated[float, "share of a sample", "that a stage takes to be listed"] = 0.01
MOST_STAGES: Annotated[int, "stages", "listed: more do not fit the screen"] = 16
DEEPEST: Annotated[int, "stages", "inside each other"] = 6
MOST_CALLS: Annotated[int, "calls of a stage", "whose arguments are kept"] = 48
MOST_BYTES: Annotated[int, "bytes", "of a stage's arguments"] = 64 << 20
MOST_SAMPLES: Annotated[int, "samples", "that are read for their mean"] = 512
COPIES: Annotated[int, "times", "that a batch is pinned and copied to the device"] = 20

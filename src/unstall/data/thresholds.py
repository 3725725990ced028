"""Every threshold of `unstall data` outside the program: its value, its unit, and why it is that."""

from __future__ import annotations

from typing import Annotated

from unstall.threshold import Seconds, Share

STEPS_WITHOUT_LOADER: Annotated[int, "steps", "after which a program without a DataLoader is taken to have none"] = 30
LONGEST_S: Annotated[Seconds, "for the wanted loader to be iterated, before the program is stopped"] = 600.0
LOOK_EVERY_S: Annotated[Seconds, "between two looks at what was measured"] = 1.0
LAST_LINES: Annotated[int, "lines", "of what a failed program wrote: a traceback's end"] = 6

ENOUGH: Annotated[Share, "of the best rate, that fewer workers must give to be named instead"] = 0.97
SEVERAL_CALLS: Annotated[float, "calls a sample", "from which on the number is worth a note"] = 1.5
REST: Annotated[Share, "of an item, that its time outside all stages must be to be listed"] = 0.02
INNERMOST: Annotated[Share, "of its caller's time, that a stage must hold to be blamed in its place"] = 0.7
COLD_ITEM: Annotated[float, "times the mean item", "that the first must take to be worth a note"] = 5.0
DISTURBED: Annotated[float, "cores taken by other programs", "that lower the rates visibly"] = 0.2

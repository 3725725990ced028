"""Every number that decides what a report says of its figures: its value, its unit, and why it is that.

What a figure means was decided before, by what measured or judged it; what fits the screen is each view's own affair.
"""

from __future__ import annotations

from typing import Annotated

from unstall.threshold import Factor, Seconds, Share, Steps

# Speed.
NOTICEABLE: Annotated[Factor, "as fast: smaller speed-ups are not worth a word"] = 1.02
FASTER: Annotated[Factor, "as fast in a prediction: smaller gains are none to speak of"] = 1.03
SAME: Annotated[Factor, "the step of another trace: a smaller change is none"] = 1.005
ABOVE_CEILING: Annotated[Factor, "the ceiling's upper end: less above it is the calibration of either"] = 1.25
UNBOUNDED: Annotated[Factor, "as fast: an upper end from here on says only that nothing bounds it"] = 999.0
UNKNOWN: Annotated[Factor, "as fast: from an interval that ends beyond, nothing can be read"] = 1e4
UNKNOWN_RATIO: Annotated[Factor, "the lower end of a gate's interval at its upper one, which then tells nothing"] = 10.0
SOME_GAP: Annotated[Share, "of a ceiling, by which the program falls short of it, from where on it is shown warm"] = 0.2
LARGE_GAP: Annotated[Share, "the same, from where on it is shown hot: the program could be twice as fast"] = 0.5

# Shares of the step, and what else is told from where on.
NOTABLE_SHARE: Annotated[Share, "of the step, or of the run: a phase of less has no words of its own"] = 0.05
NOTABLE_SKEW: Annotated[Share, "of the longest wait: less difference between ranks is chance"] = 0.25
NOTABLE_PART: Annotated[Share, "of a phase, blocked or on the network: less is no word about the phase"] = 0.1
NOTABLE_CALLBACK: Annotated[Share, "of the run: the pages have the others"] = 0.01
NOTABLE_OPERATOR: Annotated[Share, "of the critical path: operators of less would be a long list"] = 0.03
NOTABLE_KIND: Annotated[Share, "of the critical path: what takes less is not told of"] = 0.01
NOTABLE_USE: Annotated[Share, "of the step in a use of the device, or in a part of the program"] = 0.02
SHOWN_AS_ZERO: Annotated[float, "share, or elasticity", "that rounding would show as nothing"] = 0.005
COMPARED_PHASE: Annotated[Share, "of the largest phase, or of a step: less is left out of a comparison"] = 0.005
COMPARED_CHANGE: Annotated[Share, "of the step before: a smaller change of a kernel is not shown"] = 0.002
NOTABLE_S: Annotated[Seconds, "before and after the loop: less is how long any program takes to start"] = 0.5
NOTABLE_BYTES: Annotated[float, "bytes a step", "less is a few objects, or what allocators round up"] = 1000.0
NOTABLE_CORES: Annotated[float, "cores", "less is what a system takes by itself"] = 0.05
MORE_CPU: Annotated[Factor, "the original's core-seconds: less is not worth a word, as noise moves them"] = 1.25
MORE_MEMORY: Annotated[Factor, "the original's memory: less is not worth a word, as allocators vary"] = 1.2

# What would make a verdict surer.
BUSY_CORES: Annotated[float, "cores of other programs", "from which on they are the first thing to wait for"] = 0.5
STABLE_STEPS: Annotated[Steps, "to ask for, at least, where more steps would raise the confidence"] = 200

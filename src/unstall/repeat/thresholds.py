"""Every number that runs are compared by, and gates stopped by: its value, its unit, and why it is that."""

from __future__ import annotations

from typing import Annotated

from unstall.simplify.thresholds import OTHERS_CHANGED
from unstall.threshold import Factor, Seconds, Share, Steps

Pairs = Annotated[int, "pairs of runs"]

# What two runs may differ by and still be compared.
LOAD_CORES: Annotated[float, "cores of other programs", "by which two runs may differ: less moves no step"] = 0.2
MEMORY_TOLERANCE: Annotated[Share, "of the machine's memory: a virtual machine's varies from boot to boot"] = 0.02
SAMPLES_TOLERANCE: Annotated[Share, "of the samples a step: the last batch of an epoch may hold fewer"] = 0.02
BLOCKS: Annotated[int, "blocks of steps", "of a run: steps that follow each other are alike, and are no samples"] = 10
FEWEST_BLOCKS: Annotated[int, "blocks of steps", "the variance of fewer is not known"] = 4
SURE: Annotated[float, "quantile", "of Student's t: phases that differ by chance are told once in twenty times"] = 0.975
FEWEST_DEGREES: Annotated[
    int, "degrees of freedom", "of the noise between runs: Student's t of one is so wide that nothing could be shown"
] = 2

# A gate.
FIRST_LOOK: Annotated[Pairs, "the first that a trimmed mean and its error can be had of, with some power"] = 4
FIRST_END: Annotated[Pairs, "after which the milder rule holds; more are run only where these do not suffice"] = 32
FEWEST_PAIRS: Annotated[Pairs, "for any answer at all, where time ends the gate"] = 3
TRIM: Annotated[Share, "of the pairs, left out at either end: a burst of load that hits one run does not decide"] = 0.2
UNEVEN_LOAD = OTHERS_CHANGED  # of the cores, by which other programs' load may differ between the runs of a pair
FEWEST_STEPS: Annotated[Steps, "of a run: of fewer, warm-up and the edges of windows leave no mean"] = 50
MOST_STEPS: Annotated[Steps, "of a run, however much its steps differ: the noise between runs is larger by then"] = 2000
WANTED_ERROR: Annotated[Share, "of a run's mean step: a better known one is no use beside the noise of runs"] = 0.025
KILL_AFTER_S: Annotated[Seconds, "for a program that does not heed SIGTERM"] = 10.0

# When to stop.
CLOSE_ENOUGH: Annotated[Factor, "the present speed, to which the bound has come: the rest is not worth a day"] = 1.05
LITTLE: Annotated[Factor, "as fast: a smaller gain is called little, whatever the noise"] = 1.03
LOOK_BACK_WEEKS: Annotated[int, "weeks", "whose runs tell how much a program is run: longer ago it was another"] = 4

# The ledger and git.
BUSY_S: Annotated[Seconds, "to wait for another run that is writing to the ledger"] = 10.0
STATEMENT_S: Annotated[Seconds, "none on a ledger takes longer, unless somebody made it so"] = 8.0
GIT_PATIENCE_S: Annotated[Seconds, "for git to name the commit: a run's end does not wait longer"] = 3.0
MOST_LINKS: Annotated[int, "files", "unknown to git that a worktree gets links to: folders count as one"] = 20_000

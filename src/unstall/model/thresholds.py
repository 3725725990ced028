"""Every figure that the pipeline model takes from elsewhere than the recording: its value, its unit, its reason."""

from __future__ import annotations

from typing import Annotated

from unstall.threshold import Factor, Seconds, Share

# The machine. Measured by ``bench/model.py`` on virtual machines of two cores.
CONTENTION: Annotated[Share, "of a core's speed, lost while all others are busy: 0 to 0.4 from hour to hour"] = 0.2
TEAM_WASTE: Annotated[Share, "of a core, that each thread of a team takes by spinning where cores are short"] = 0.25
TEAM_SLOWNESS: Annotated[Share, "of its speed, that a team loses to its slowest thread where cores are short"] = 0.3
SHIP_S: Annotated[Seconds, "a batch through pickling and shared memory, in the worker"] = 0.5e-3
TAKE_S: Annotated[Seconds, "a batch through unpickling, in the main thread"] = 0.4e-3
START_WORKER_S: Annotated[Seconds, "a process forked, where no worker was recorded"] = 0.02
PARALLEL: Annotated[Share, "of the model's mathematics shared out by more threads, where one was recorded"] = 0.6
DEVICE_AHEAD: Annotated[int, "batches", "that the main thread may be ahead of a device that it does not wait for"] = 3
ASIDE_AHEAD: Annotated[int, "batches", "that the main thread may be ahead of callbacks on a thread of their own"] = 4

# Stalls of a team of threads.
ORDINARY: Annotated[Factor, "as long as the unhindered steps: what steps differ by anyway"] = 1.25

# From the recording to the pipeline.
SYNCS: Annotated[Share, "of the step in `sync`, from which on it waits for the device in every step"] = 0.02
FIT_BATCHES: Annotated[int, "batches", "of a simulation while it is fitted: its noise is below what is fitted"] = 400
FIT_TRIES: Annotated[int, "simulations", "of each of two rounds, the second around the best of the first"] = 12
FIT_ENOUGH: Annotated[Share, "by which the simulated body may miss the recorded one"] = 0.1
LEAST_ALONE: Annotated[Share, "of what was seen, that computing may have taken alone by a law of cores"] = 0.3
LEAST_COMPUTED: Annotated[Share, "of what was seen, that computing took in any case"] = 0.1
LONG_EPOCH: Annotated[int, "steps", "of a loop that shows no epochs, over which validation is spread"] = 100_000

# Predictions. Nine of ten measured steps are to lie inside the interval: of settings by ``bench/model.py``, of
# components that take another time by ``bench/predictions.py``. Shares of these come of samples, and caches are shared.
BATCHES: Annotated[int, "batches", "of a simulation: a mean within a per cent, in a tenth of a second"] = 2000
MOST_IN_FLIGHT: Annotated[int, "batches", "left out at the beginning, while the queues fill"] = 4000
NUDGE: Annotated[Share, "by which a component is made longer and shorter to see its elasticity"] = 0.01
ERROR: Annotated[float, "in logarithms", "for any change of settings"] = 0.06
ERROR_OF_CHANGE: Annotated[float, "in logarithms", "for each e-fold that the step changes by with settings"] = 0.12
ERROR_SCALED: Annotated[float, "in logarithms", "for any change of a component's time"] = 0.1
ERROR_OF_SCALED: Annotated[float, "in logarithms", "for each e-fold that the step changes by with a component"] = 0.3
FULL: Annotated[Share, "of the cores busy, from which on they are the bottleneck"] = 0.93

# The survey of `what-if` without a question.
LEAST_SHARE: Annotated[Share, "of the step, that a phase must take to be asked about"] = 0.05
LEAST_FUNCTION: Annotated[Share, "of the loader's samples, that a function must take to be asked about"] = 0.1
CALLS_OTHERS: Annotated[Share, "of the loader's samples, from which on a function only calls the others"] = 0.95
MOST_FUNCTIONS: Annotated[int, "functions", "asked about: more do not fit the screen"] = 4
WORTH_A_WORKER: Annotated[Factor, "as fast as with the next smaller number of workers, to be worth telling"] = 1.01
BUSY_NEIGHBOURS: Annotated[Share, "of the cores taken by other programs, worth a note"] = 0.1

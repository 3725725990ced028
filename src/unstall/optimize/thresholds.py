"""The numbers that tell rounding from more than that, which `make sameness-bench` measures; then those of agents."""

from __future__ import annotations

from unstall.threshold import Threshold

SIZE = Threshold(
    128,
    "times the noise of one unit in the last place. Another order of long sums goes to 63 (channels_last, the bias of "
    "a batch norm); float16 begins at 6,400, and TF32 has 8,192 times the unit of float32",
)
DIRECTION = Threshold(
    8,
    "standard deviations of a coefficient. A normal one never reaches 8, but the deviation is known from a few runs "
    "only, and a change may be some times as noisy as they are",
)
SYSTEMATIC_ULPS = Threshold(
    4,
    "units in the last place, of all weights. A learning rate or a decay that is rounded to one factor is off by half "
    "of one each step; no weight decay of 1e-4 at a learning rate of 1e-3 makes 11 in 12 steps",
)
OUTPUT_ULPS = Threshold(
    8,
    "units in the last place, of an output along itself. A mean over positions adds numbers of one sign, and is off in "
    "one direction: by 4 in channels_last",
)
LEAST_ELEMENTS = Threshold(64, "below it, a few random signs look like a direction")
STRAY_SHARE = Threshold(
    0.005, "of a tensor's weights: where a gradient is zero but for rounding, Adam's update has either sign"
)
STRAY_UPDATES = Threshold(
    2, "times the largest update of the tensor in the run: an update of the other sign is off by twice its own"
)
STRAY_ROW = Threshold(8, "stray weights next to each other: chance scatters them, a row that was not trained does not")
COARSE = Threshold(2.0**-8, "the unit roundoff of bfloat16: a limit that coarse would let it pass")
PERTURBED_RUNS = Threshold(4, "the largest of 4 random deviations is below a fifth of their size once in 600 times")
AGENT_IDLE = Threshold(2, "times in a row that an agent gave nothing to try: told why once, it would know")
AGENT_LEAST_S = Threshold(30, "seconds that an agent has in any case: less is too short to start one")
AGENT_STEPS = Threshold(
    100, "steps whose results are compared: beyond the ones that time a change, and few enough to be kept in memory"
)

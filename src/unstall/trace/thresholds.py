"""Every threshold that a trace is cut up with, in one table: its value and where it comes from.

"Measured" means on the real traces that the tests read (V100, A100, B200, MI300X). From where on a pattern is worth
looking at is in :mod:`unstall.diagnose.thresholds`.
"""

from __future__ import annotations

from unstall import threshold
from unstall.threshold import Threshold

PROMPT_START_NS = Threshold(
    10_000, "measured: 84 to 99.6 % of kernels start within 10 µs when the host is late, else 2 to 22 %"
)
HOST_GAP_NS = Threshold(
    500_000, "measured: gaps between two launches of eager PyTorch are 15 to 65 µs, 99 % under 480 µs"
)
TINY_COPY_BYTES = Threshold(
    4096, "a scalar or a small index tensor: the copy itself takes about 2 µs, the wait the rest"
)
COLD_LAUNCH_NS = Threshold(
    300_000, "measured: lazy module loading takes about 1 ms for a kernel's first launch, others 5 to 20 µs"
)
DEEP_QUEUE = Threshold(512, "CUDA's launch queue holds 1,024 entries; from half of it on a long call is back-pressure")
SMALL_KERNEL_NS = Threshold(20_000, "published guides: kernels shorter than what it takes to launch one from Python")
REPLAY_ERROR = Threshold(0.02, "the replay must give the recorded step time within 2 %")
CONFIRMED_SHARE = Threshold(0.25, "a quarter of the step: no error of the replay within its bound can turn it over")
FEWEST_EVENTS = Threshold(20, "events on the device: fewer are no loop")
CONFIRMS = threshold.WORTH  # predicted gain below which the replay does not confirm a wait

"""Every threshold of the trace's diagnosis, in one table, each with where it comes from.

"Measured" means on the real traces that the tests read (V100, A100, B200, MI300X); the others name their source.
A finding's weight is its predicted gain; thresholds only say from where on a pattern is worth looking at.
"""

from __future__ import annotations

from typing import NamedTuple


class Threshold(NamedTuple):
    """A number and why it is that."""

    value: float
    source: str


LOADER_SHARE = Threshold(0.05, "TensorBoard's PyTorch profiler: DataLoader above 5 % of the step; XProf: 5 % and 20 %")
COMMUNICATION_SHARE = Threshold(0.10, "TensorBoard's PyTorch profiler: exposed communication above 10 % of the step")
BUSY_WITHOUT_GAPS = Threshold(0.90, "the seed literature: GPU compute-bound is above 90 % busy without gaps")
MOSTLY_COMPUTING = Threshold(0.60, "measured: traces that experts read as compute-bound compute 70 to 99 % of the step")
PROMPT_START_NS = Threshold(
    10_000, "measured: 84 to 99.6 % of kernels start within 10 µs when the host is late, else 2 to 22 %"
)
PROMPT_SHARE = Threshold(0.50, "measured: between 22 % (queue deep) and 84 % (queue empty)")
SUBMITTING_SHARE = Threshold(0.10, "XProf's kernel-launch rule: 3 % to look at, 15 % to worry; between them")
HOST_GAP_NS = Threshold(
    500_000, "measured: gaps between two launches of eager PyTorch are 15 to 65 µs, 99 % under 480 µs"
)
HOST_SHARE = Threshold(0.10, "SageMaker Debugger warns of a CPU bottleneck from 10 % of the steps' time")
IDLE_SYNC_SHARE = Threshold(0.05, "as for the loader: from 5 % of the step on; waiting for a busy device is no loss")
TRANSFER_SHARE = Threshold(0.05, "XProf's output rule: 5 % to look at, 20 % to worry")
TINY_COPY_BYTES = Threshold(
    4096, "a scalar or a small index tensor: the copy itself takes about 2 µs, the wait the rest"
)
COLD_LAUNCH_NS = Threshold(
    300_000, "measured: lazy module loading takes about 1 ms for a kernel's first launch, others 5 to 20 µs"
)
DEEP_QUEUE = Threshold(512, "CUDA's launch queue holds 1,024 entries; from half of it on a long call is back-pressure")
SMALL_KERNEL_NS = Threshold(20_000, "the seed literature: kernels shorter than what it takes to launch one from Python")
WORTH_GAIN = Threshold(1.18, "as in `unstall run`: below it a run is healthy")
SEEN_GAIN = Threshold(1.03, "below it a finding is not worth a line")
LATE_RANK_SHARE = Threshold(0.10, "as in `unstall run`: a rank that the others wait for a tenth of the step")
STEP_VARIATION = Threshold(0.10, "SageMaker Debugger's step outliers are beyond 3 σ; a tenth is worth a word")
REPLAY_ERROR = Threshold(0.02, "the replay must give the recorded step time within 2 %")

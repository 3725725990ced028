"""Every threshold of the diagnosis, in one table: its value and where it comes from.

"Measured" means on the programs of ``tests/zoo`` (for the host) and on the real traces that the tests read (for the
device: V100, A100, B200, MI300X). A finding weighs what it would gain; a threshold only says from where on a
pattern is worth looking at. What a trace is cut up with is in :mod:`unstall.trace.thresholds`.
"""

from __future__ import annotations

from unstall.threshold import Threshold

# ------------------------------------------------------------ ranking

WORTH = Threshold(1.18, "headroom from which a finding is worth a person's time; below it a run is healthy")
SEEN = Threshold(1.05, "headroom below it is within what two runs of one program differ by: not worth a finding")
OUTRANKS_GROWTH = Threshold(2.0, "a stall must cost this factor to come before a run that will die of its memory")
MOSTLY_MODEL = Threshold(0.5, "share of the step from which the model's mathematics is the main matter")

# ------------------------------------------------------------ doubts

FEW_STEPS = Threshold(20, "steps: below it the mean of a step is known to a fifth at best (measured, zoo)")
VERY_FEW_STEPS = Threshold(8, "steps: below it one slow step moves the mean by a tenth")
FEW_SAMPLES = Threshold(60, "stack samples: below it a share of one half is known to ± 13 % (binomial)")
UNSURE_SPREAD = Threshold(0.15, "relative standard error of the mean step: worth a word")
VERY_UNSURE_SPREAD = Threshold(0.3, "relative standard error of the mean step: the mean says little")
BUSY_ELSEWHERE = Threshold(0.5, "cores that other programs take: half a core shows in the steps of a small machine")
MOSTLY_ELSEWHERE = Threshold(0.4, "share of all cores that other programs take: what is measured is contention")

# ------------------------------------------------------------ the account of phases

FEWEST_SAMPLES = Threshold(20, "stack samples: with fewer, time that no seam claims is not split by them")
CHANCE = Threshold(3.0, "standard deviations of a count of samples: beyond it, it is not chance")
STRAY = Threshold(0.005, "share of a step: a claim below it is a stray sample, not a phase")
NEIGHBOURS = Threshold(0.1, "cores of other programs from which on their part is taken out of the step")
LEAST_LEFT = Threshold(0.05, "share of a phase that stays, however much other programs took")

# ------------------------------------------------------------ patterns, on the host

FULL_CORES = Threshold(0.75, "cores needed over cores there are: measured, from here on loader and model collide")
LOADER_CPU = Threshold(0.25, "share of the CPU time that workers must take to be blamed for full cores")
MOST = Threshold(0.5, "more than half: the larger part explains the whole")
NETWORK = Threshold(0.4, "share of making a batch inside sockets: with latency hidden by read-ahead, most of its wait")
SPARE_CORE = Threshold(0.7, "of a core that is idle: enough for one more worker")
MODEL_SHARE = Threshold(0.3, "share of the step below which the model's cost is no verdict")
DOMINANT = Threshold(0.6, "share of the modules' own time from which a layer is out of proportion, if it is odd")
DOMINANT_ALONE = Threshold(0.85, "share of the modules' own time from which next to nothing else takes time")
LARGE_KERNEL = Threshold(49, "weights a channel, 7 x 7: larger ones are rare and slow")
SLOW_RATE = Threshold(0.35, "of the machine's peak: an odd layer at less is worth a look (measured, zoo)")
POOR_RATE = Threshold(0.2, "of the machine's peak: no well-shaped float32 model of the zoo computes at less")
DEAR_OPTIMIZER = Threshold(0.4, "of the model's time: an update costs a few passes over the weights, never so much")
IDLE_TEAM = Threshold(0.6, "threads over cores of a rank: less leaves whole cores idle")
QUIET = Threshold(0.15, "of all cores taken by others: above it the arithmetic rate tells of the neighbours")
TINY_OP_S = Threshold(60e-6, "seconds: calling an operator takes 5 to 30 µs; useful ones take longer (measured)")
MANY_OPS = Threshold(150, "operators a step: fewer cannot add up to a stall")
BATCHED = Threshold(16, "samples: assumed where the size of a batch is not known")
LOW_EFFICIENCY = Threshold(0.05, "of the machine's peak: calls of operators cost more than what they compute")
CALLED_OFTEN = Threshold(4, "calls of the model a step: then it is called once an item")
FUSED = Threshold(0.8, "of the operators' time that batching or fusing saves: a fifth is what they compute")
VECTORISED = Threshold(0.75, "of the cost of acting that a vector of environments saves")
GROWING = Threshold(0.15, "step time at the end over the beginning, less one: the step grows")
BLOCKED = Threshold(0.3, "share of a phase off the cores that is worth a word")
GROWTH_POINTS = Threshold(8, "readings of memory: a slope through fewer says nothing")
GROWTH_BYTES = Threshold(24e6, "bytes a run must have grown by: less is an allocator settling (measured)")
GROWTH_EXPLAINED = Threshold(0.3, "of the growth that the program was seen to hold: then it is no warm-up")
DDP_BUCKET_BYTES = Threshold(4e6, "gradients of less fill no bucket: latency, not bandwidth, is what costs")
NOTABLE_CALLBACK = Threshold(0.05, "share of the step from which a callback is named in the evidence")

# ------------------------------------------------------------ patterns, on the device

LOADER_SHARE = Threshold(0.05, "TensorBoard's PyTorch profiler: DataLoader above 5 % of the step; XProf: 5 % and 20 %")
COMMUNICATION_SHARE = Threshold(0.10, "TensorBoard's PyTorch profiler: exposed communication above 10 % of the step")
BUSY_WITHOUT_GAPS = Threshold(0.90, "the seed literature: GPU compute-bound is above 90 % busy without gaps")
MOSTLY_COMPUTING = Threshold(0.60, "measured: traces that experts read as compute-bound compute 70 to 99 % of the step")
PROMPT_SHARE = Threshold(0.50, "measured: between 22 % (queue deep) and 84 % (queue empty)")
SUBMITTING_SHARE = Threshold(0.10, "XProf's kernel-launch rule: 3 % to look at, 15 % to worry; between them")
HOST_SHARE = Threshold(0.10, "SageMaker Debugger warns of a CPU bottleneck from 10 % of the steps' time")
IDLE_SYNC_SHARE = Threshold(0.05, "as for the loader: from 5 % of the step on; waiting for a busy device is no loss")
TRANSFER_SHARE = Threshold(0.05, "XProf's output rule: 5 % to look at, 20 % to worry")
SEEN_GAIN = Threshold(1.03, "predicted gain of a replay below which a finding is not worth a line")
LATE_RANK_SHARE = Threshold(0.10, "a rank that the others wait for a tenth of the step")
STEP_VARIATION = Threshold(0.10, "SageMaker Debugger's step outliers are beyond 3 σ; a tenth is worth a word")
SMALL_KERNELS = Threshold(0.5, "share of kernels shorter than what it takes to launch one")
MEMORY_CALLS = Threshold(0.02, "share of a step in calls that allocate device memory: with a cache it is none")

"""Every threshold of the diagnosis, in one table: its value and where it comes from.

"Measured" means on the programs of ``tests/zoo`` (for the host) and on the real traces that the tests read (for the
device: V100, A100, B200, MI300X). A finding weighs what it would gain; a threshold only says from where on a
pattern is worth looking at. What a trace is cut up with is in :mod:`unstall.trace.thresholds`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from unstall import threshold
from unstall.threshold import Range, Threshold

# ------------------------------------------------------------ ranking

MOSTLY_IDLE = Threshold(
    0.6, "share of a step without a request: with less, a client that waits for answers sets the pace too"
)
WORTH = threshold.WORTH
WORTH_A_LINE = Threshold(1.1, "times faster, from which a cure of one line that `optimize` writes is worth it")
PAGE_FAULT_S = Threshold(3e-6, "seconds for a page at most: measured 1.5e-6 in a virtual machine, its zeroing included")
FAULTS_SAID = Threshold(0.1, "share of a step that the kernel takes to give pages, from which a report says so")
FAULTS_FIRST = Threshold(
    0.5, "of what a layer out of proportion takes: `optimize` writes a line for one, a person must rewrite the other"
)
KEPT_MEMORY_TAKES = Threshold(
    3.0, "times the memory, for which there must be room: what is kept lies in pieces. Measured: 2"
)
LEADS = Threshold(0.1, "share of a step in a pattern's phases: with less it is no verdict, whatever it promises")
NOTICED = Threshold(1.02, "gain of faster kernels: with less, it is the host that takes the time")
CHANGED = Threshold(1.005, "gain that a replay predicts: less is what it is off by without any change")
TIE = Threshold(1.001, "times: what must come first, of two that weigh the same, weighs so much more")
SEEN = Threshold(1.05, "headroom below it is within what two runs of one program differ by: not worth a finding")
OUTRANKS_GROWTH = Threshold(2.0, "a stall must cost this factor to come before a run that will die of its memory")
DEBUGGING_LEADS = Threshold(
    0.2, "share of a step in checks for errors that comes before the model's own cost: off with a word"
)
NOTED_OP_S = Threshold(
    7e-5, "seconds to note the stack of an operator: 30 to 80 µs in five models (make anomaly-bench), 120 once"
)
MOSTLY_NOTING = Threshold(
    0.9, "of forward, at most, in noting stacks: 0.88 to 0.94 of many small operators (make anomaly-bench)"
)
CHECKING_GRADIENTS = Threshold(0.35, "of backward in looking for NaN: 0.2 to 0.5 in five models (make anomaly-bench)")
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
HOLDS = Threshold(0.5, "share of a set of samples from which on a function holds their time")
HANDS_ON = Threshold(0.8, "of a function's time that one it calls has, from which it is that one's")
CHANCE = Threshold(3.0, "standard deviations of a count of samples: beyond it, it is not chance")
STRAY = Threshold(0.005, "share of a step: a claim below it is a stray sample, not a phase")
NEIGHBOURS = Threshold(0.1, "cores of other programs from which on their part is taken out of the step")
NAMED_OTHER = Threshold(0.1, "share of a step in code that no call claims: from a tenth on its functions are named")
LEAST_LEFT = Threshold(
    0.05, "share of a phase that stays, however long threads waited, where its CPU time is not known"
)

# ------------------------------------------------------------ patterns, on the host

FULL_CORES = Threshold(0.75, "cores needed over cores there are: measured, from here on loader and model collide")
LOADER_CPU = Threshold(0.25, "share of the CPU time that workers must take to be blamed for full cores")
DELAYING_CPU = Threshold(
    0.15, "the same where the model's threads are seen to wait for cores: seen at 0.2, and at 0.05 without harm"
)
UNDISTURBED = Threshold(1.5, "times quicker or slower than so estimated: the model without workers (zoo: 1.1, 1.15)")
TEAM_DELAYED = Threshold(0.15, "of a step in which threads of the model wait for cores: the others wait for them")
OWN_DELAY = Threshold(
    0.1, "of a step that the main thread waits for a core: with nobody else there, it is ready at once"
)
OWN_WORKERS = Threshold(0.05, "of a core: workers that take so little keep nobody from one")
OTHER_THREADS = Threshold(0.1, "samples of other Python threads for each of the main one: fewer take no core from it")
OVERSUBSCRIBED = Threshold(0.15, "of a step that its own threads cost: less may be steps that differ")
MOSTLY_CONTENDED = Threshold(0.3, "of a step: so much is more than steps differ by (measured: 0.5 to 0.8)")
MOST = Threshold(0.5, "more than half: the larger part explains the whole")
SUBNORMAL = Threshold(0.01, "of an optimizer's numbers: one among those of a vector makes the processor take longer")
NETWORK = Threshold(0.4, "share of making a batch inside sockets: with latency hidden by read-ahead, most of its wait")
SPARE_CORE = Threshold(0.7, "of a core that is idle: enough for one more worker")
MODEL_SHARE = Threshold(0.3, "share of the step below which the model's cost is no verdict")
DOMINANT = Threshold(0.6, "share of the modules' own time from which a layer is out of proportion, if it is odd")
DOMINANT_ALONE = Threshold(0.85, "share of the modules' own time from which next to nothing else takes time")
LARGE_KERNEL = Threshold(49, "weights a channel, 7 x 7: larger ones are rare and slow")
SLOW_RATE = Threshold(0.35, "of the machine's peak: an odd layer at less is worth a look (measured, zoo)")
POOR_RATE = Threshold(0.2, "of the machine's peak: no well-shaped float32 model of the zoo computes at less")
MOSTLY_COUNTED = Threshold(
    0.8, "share of operator calls with a FLOP formula: a low rate of most of them is the model's"
)
FEW_MODULES = Threshold(3, "modules that take time: of fewer, one takes most of it in any model")
PYTHON_IN_FORWARD = Threshold(
    0.3, "of the forward: with so much plain Python in it, no layer's mathematics is the matter"
)
COLLECTING = Threshold(0.05, "of a step in the garbage collector: young objects take less")
NOTABLE_DELAY = Threshold(0.05, "of a step that the main thread waits for a core: worth a word")
RESTARTING = Threshold(0.1, "of a step spent waiting for batches: with less, new workers cost next to nothing")
THREADED = Threshold(1.6, "times the CPU time of making batches that workers take: a second thread takes the rest")
NOTABLE_BLOCKED = Threshold(0.2, "of making a batch off the cores: worth a word")
UNEVEN = Threshold(0.25, "of the longest wait: less difference between ranks is chance")
VERY_UNEVEN = Threshold(0.6, "of the longest wait: more difference between ranks is a straggler's doing")
LATE_EXCESS = Threshold(1.2, "times: a late rank's excess is in a phase of its own too, which must not come first")
NOTABLE_EXCHANGE = Threshold(0.01, "of a step blocked in the model: less is no exchange of gradients")
FEW_ITEMS = Threshold(2, "samples a call: the model is called once an item")
LARGE_MODEL_OPS = Threshold(2000, "operators a call: so many are no item's, whatever the size of the batch")
DEAR_OPTIMIZER = Threshold(0.4, "of the model's time: an update costs a few passes over the weights, never so much")
ZERO_PRODUCTS = Threshold(0.15, "share of a step that multiplies by zeros: without it, 1.18x")
UNUSED_GRADIENTS = Threshold(0.1, "share of a step that computes gradients for no optimizer: without it, 1.1x")
COMPUTED_AGAIN = Threshold(0.15, "of the operators' time that computes what is known: without it, 1.15x")
COMPUTED_AGAIN_LEADS = Threshold(
    0.33, "of the operators' time that computes what is known: not to do it comes before how the model does it"
)
SAME_DATA = Threshold(0.95, "of what is computed that recurs: then it is the data that recurs, as in a benchmark")
PADDING = Threshold(0.25, "share of a step that computes on padding: without it, 1.33x; less is usual")
COSTLY_GRADIENT = Threshold(0.2, "share of a step that the gradient of one line takes: without it, 1.25x")
HOOKED = Threshold(0.2, "share of a step in Python code that backward calls: without it, 1.25x")
ATTENTION = Threshold(0.25, "share of the step in separate operators: a fused one gained 1.14 where it was 0.35")
COPYING = Threshold(0.2, "share of a step in one line that only moves data: without it, 1.25x")
GRADIENT_RATIO = Threshold(
    5.0, "times what the operators take: for products of matrices and convolutions it is 2, for normalisations up to 4"
)
IDLE_TEAM = Threshold(0.6, "threads over cores of a rank: less leaves whole cores idle")
QUIET = Threshold(0.15, "of all cores taken by others: above it the arithmetic rate tells of the neighbours")
LATE_SCATTER = Threshold(10.0, "median distances from the median rank, 6.7 σ: no healthy rank of thousands is later")
LATE_LEAST = Threshold(0.05, "share of a step: less lateness is within what two runs differ by")
ENDED_EARLY = Threshold(0.9, "of the steps of the other ranks: ranks step together, but for the last few at an end")
NO_CORE = Threshold(0.03, "of a core: threads that wake up only to look at a clock take less")
MOVING = Threshold(
    0.002, "of a core: a main thread that only looks at a clock takes a tenth of it, a slow loader thrice"
)
STUCK_S = Threshold(4.0, "seconds of one stack: a step, a batch or a checkpoint shows another one meanwhile, as a rule")
STUCK_SAMPLES = Threshold(50, "of one stack and none of another")
TINY_OP_S = Threshold(60e-6, "seconds: calling an operator takes 5 to 30 µs; useful ones take longer (measured)")
CALLED_OP_S = Threshold(
    12e-6, "seconds: calling an operator takes 5 to 30 µs, with the Python of its module: the geometric middle"
)
SLOW_CALL_S = Threshold(30e-6, "seconds: the longest that calling an operator takes (measured)")
WEIGHT_S = Threshold(0.4e-9, "seconds a weight: 4 bytes at 10 GB/s, what one core reads of memory")
IN_UNCOMPILED = Threshold(0.1, "of the model's samples that must be in a function that torch.compile gave up")
MANY_OPS = Threshold(150, "operators a step: fewer cannot add up to a stall")
BATCHED = Threshold(16, "samples: assumed where the size of a batch is not known")
LOW_EFFICIENCY = Threshold(0.1, "of the machine's peak: layers reach 0.25, so calls cost more than they compute")
WRITTEN_BYTES_PER_S = Threshold(10e9, "that one core writes, as it reads (see WEIGHT_S)")
WRITING = Threshold(0.2, "share of the model's time, above which writing results is what its operators do")
FORWARD_OPS = Threshold(1 / 4, "of the operators of a training step are those of its forward calls, at least")
LEAST_CALL_S = Threshold(1e-6, "seconds: no operator that records a gradient is called in less (measured: 1.9 µs)")
CALLED_OFTEN = Threshold(4, "calls of the model a step: then it is called once an item")
BLOCKED = Threshold(0.3, "share of a phase off the cores that is worth a word")
UNRECORDED_WAIT = Threshold(0.1, "share of the step that forward is blocked: less is threads waiting for each other")
READS_BYTES = Threshold(4096, "bytes a step from files: less than a page is no reading of data")
TAIL_BYTES_PER_STEP = Threshold(1024.0, "bytes a step: less is what an allocator moves by")
TAIL_BYTES = Threshold(float(1 << 20), "bytes over the tail: an allocator's noise is of this size")
PLATEAU = Threshold(0.4, "of its rate in the first half of the tail: what falls to less levels off")
TOOTH = Threshold(0.3, "of the tail's range: a fall by so much is a release; what follows is an unfinished tooth")
RELEASE_POINTS = Threshold(3, "readings that such a fall may take: releases seldom fall between two readings")
FLOOR_RISE = Threshold(0.25, "of the tail's range: a floor that rises by less rises by chance")
GROWTH_STEPS = Threshold(6, "steps in the tail: what rises within fewer may be what each of them needs for a while")
GROWTH_POINTS = Threshold(8, "readings of memory: a slope through fewer says nothing")
GROWTH_BYTES = Threshold(24e6, "bytes a run must have grown by: less is an allocator settling (measured)")
GROWTH_CONFIDENCE = Threshold(
    0.995,
    "that memory grows, where nobody was seen to keep it: readings differ by what a step needs meanwhile",
)
FREE_LOOKS = Threshold(3, "looks at what the allocator holds: two give a slope, and nothing to check it by")
GROWTH_EXPLAINED = Threshold(0.3, "of the growth that the program was seen to hold: then it is no warm-up")
DDP_BUCKET_BYTES = Threshold(4e6, "gradients of less fill no bucket: latency, not bandwidth, is what costs")
SET_UP = Threshold(0.3, "share of the time before the first step from which the function that holds it is named")
SET_UP_LEADS = Threshold(0.33, "share of a whole run in one function before the first step, from which it may lead")
VALIDATES = Threshold(0.3, "share of the step from which validation is worth a finding: some of it training needs")
BESIDE_MODEL = Threshold(0.3, "of validation outside of the model's calls, from which the culprit is looked for there")
EVALUATES_BETWEEN = Threshold(0.5, "of validation's time that must lie between steps: a teacher is called within them")
NOTABLE_CALLBACK = Threshold(0.05, "share of the step from which a callback is named in the evidence")

# ------------------------------------------------------------ patterns, on the device

LOWERED_CLOCK = Threshold(0.9, "of a GPU's highest clock: boost clocks vary by less from one chip to the next")
HELD_BACK = Threshold(0.2, "share of the looks in which the driver gives a reason: a moment's peak is no limit")

LOADER_SHARE = Threshold(0.05, "TensorBoard's PyTorch profiler: DataLoader above 5 % of the step; XProf: 5 % and 20 %")
COMMUNICATION_SHARE = Threshold(0.10, "TensorBoard's PyTorch profiler: exposed communication above 10 % of the step")
BUSY_WITHOUT_GAPS = Threshold(0.90, "published guides: a GPU that is compute-bound is above 90 % busy without gaps")
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
TRACED_STEPS = Threshold(3, "steps in a trace: with fewer, a slow one cannot be told from the rest")
UNLAUNCHED = Threshold(0.02, "of the kernels without the call that launched them: the trace has lost a part")
COLD = Threshold(0.01, "of a step in which kernels are loaded: worth a word")
MEMORY_CALLS = Threshold(0.02, "share of a step in calls that allocate device memory: with a cache it is none")

# ------------------------------------------------------------ health: what it takes to say that nothing stalls a run

ACCOUNTED = Threshold(0.75, "share of the step that must be the model's: the rest, free, is worth 1.3x")
GOOD_RATE = Threshold(0.25, "of the machine's peak: at 0.23 a program was seen that batching made several times faster")
RECURRENT_RATE = Threshold(0.15, "of the peak: the steps of a recurrent layer wait for each other, whatever is done")
COUNTED_OPS = Threshold(0.5, "share of operator calls with a FLOP formula: with fewer, the rate says little")
SINGLE = Threshold(2, "observations a call of the model: a batch of so few is a rollout's, not a training's")
GOOD_MFU = Threshold(0.4, "of the listed peak: what large models train at (PaLM 0.46, Llama 3 0.38 to 0.43)")
BUSY_DEVICE = Threshold(0.6, "of the step: a device that idles longer waits for something, though no what-if names it")
SUSPECTS = Threshold(3, "functions that are named to look at next: more is a list, not a hint")

# ------------------------------------------------------------ ceilings and expected gains

NORMAL_95 = Threshold(1.96, "standard deviations of a normal distribution on either side: 95 % lie between")
LEAST_REST = Threshold(0.001, "share of a step that is left at least: a ceiling of a thousand is as good as unknown")
MOVED = Threshold(0.1, "of a phase's time that samples moved into it or out of it: with less, timers tell its share")
NARROW = Threshold(1.5, "upper over lower end of an interval up to which a figure decides what to do first: high")
WIDE = Threshold(2.5, "upper over lower end from which on a figure says little but that there is something: low")
PRECISION_COST = Threshold(0.5, "of the model's time in float64 that float32 saves: half the bytes, twice the lanes")
CONVOLUTION_COST = Threshold(
    0.75, "the same of convolutions on a processor: 2.6 to 8.8 times, mostly 4 (bench/double_precision.py)"
)
READ_AHEAD = Threshold(
    0.4, "share of a wait by which a prediction of more workers may be off: they share memory and disk"
)

Evidence = Literal["timed", "sampled", "model", "replay"]
"""What a finding's share rests on: timers, stack samples, the model of the pipeline, the replay of a trace."""

UNCALIBRATED: Mapping[Evidence, Range] = {
    "timed": Range(0.7, 1.0, 2.0, "no truth is known: as wide as what was timed of other patterns"),
    "sampled": Range(0.7, 1.0, 2.0, "no truth is known: chance is taken into account apart"),
    "model": Range(0.6, 1.0, 2.0, "no truth is known: as wide as the model's other predictions"),
    "replay": Range(0.8, 1.0, 1.25, "a replay of the same trace is off by its own error, which is added"),
}

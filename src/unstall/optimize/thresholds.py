"""Every number that decides what is tried, for how long, and what is kept: its value, its unit, and why it is that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from unstall.threshold import Bytes, Factor, Seconds, Share, Steps

Runs = Annotated[int, "runs"]
Pairs = Annotated[int, "pairs of runs"]
Ulps = Annotated[float, "units in the last place"]

# What tells rounding from more than that. `make sameness-bench` measures it.
SIZE: Annotated[
    Factor,
    "the noise of one unit in the last place. Another order of long sums goes to 63 (channels_last, the bias of a "
    "batch norm); float16 begins at 6,400, and TF32 has 8,192 times the unit of float32",
] = 128.0
DIRECTION: Annotated[
    float,
    "standard deviations of a coefficient",
    "a normal one never reaches 8, but the deviation is known from a few runs only, and a change may be some times as "
    "noisy as they are",
] = 8.0
SYSTEMATIC_ULPS: Annotated[
    Ulps,
    "of all weights. A learning rate or a decay that is rounded to one factor is off by half of one each step; no "
    "weight decay of 1e-4 at a learning rate of 1e-3 makes 11 in 12 steps",
] = 4.0
OUTPUT_ULPS: Annotated[
    Ulps,
    "of an output along itself. A mean over positions adds numbers of one sign, and is off in one direction: by 4 in "
    "channels_last",
] = 8.0
LEAST_ELEMENTS: Annotated[int, "elements", "below it, a few random signs look like a direction"] = 64
STRAY_SHARE: Annotated[
    Share, "of a tensor's weights: where a gradient is zero but for rounding, Adam's update has either sign"
] = 0.005
STRAY_UPDATES: Annotated[
    Factor, "the largest update of the tensor in the run: an update of the other sign is off by twice its own"
] = 2.0
STRAY_ROW: Annotated[int, "stray weights next to each other", "chance scatters them, an untrained row does not"] = 8
COARSE: Annotated[float, "unit roundoff", "of bfloat16: a limit that coarse would let it pass"] = 2.0**-8
PERTURBED_RUNS: Annotated[
    Runs, "the largest of 4 random deviations is below a fifth of their size once in 600 times"
] = 4
OTHER_SEEDS: Annotated[
    tuple[int, ...],
    "shifts of all seeds",
    "one after the other: in a network with max-pooling, a twentieth of what only "
    "rounds otherwise is off under one seed, and none of it under three (make sameness-bench)",
] = (0x5EED, 0x9E37)
COMPARED_STEPS: Annotated[Steps, "a wrong update shows in the steps after it, and twelve take seconds"] = 12
COMPARED_S: Annotated[Seconds, "until a run whose results are compared is given up: a start and few steps"] = 180.0

# What an agent is given.
AGENT_IDLE: Annotated[int, "times in a row", "that an agent gave nothing to try: told why once, it would know"] = 2
AGENT_LEAST_S: Annotated[Seconds, "that an agent has in any case: less is too short to start one"] = 30.0
AGENT_STEPS: Annotated[
    Steps,
    "whose results are compared: beyond the ones that time a change, and few enough to be kept in memory",
] = 100

# The diagnoses and the budget.
DIAGNOSIS_S: Annotated[Seconds, "of steps under observation: samples enough to tell a line's share"] = 12.0
QUICK_DIAGNOSIS_S: Annotated[Seconds, "the same in a quick search, which needs the worst line only"] = 4.0
LEAST_DIAGNOSED_STEPS: Annotated[Steps, "of long ones: fewer have no mean worth the name"] = 12
DIAGNOSIS_PATIENCE_S: Annotated[
    Seconds, "for imports, set-up and the steps: a program without a loop never ends it"
] = 150.0
RESERVE_SHARE: Annotated[Share, "of the budget, set aside for the last comparison, whose figure a person reads"] = 0.25
MOST_RESERVE_S: Annotated[Seconds, "set aside for it: by then its pairs have told"] = 120.0
LEAST_RUNS: Annotated[
    Runs, "of a trial that ends in a kept change: two pairs, one that confirms them, and what it computes"
] = 7

# A trial: the changed program beside the one before, in pairs of runs.
LEAST_GAIN: Annotated[
    Factor, "as fast, with 95 % confidence, for a change to be kept: less is not worth a changed line"
] = 1.02
WINDOW_S: Annotated[Seconds, "of steps timed in a run: a stable mean, and little beside the start of the program"] = 4.0
QUICK_WINDOW_S: Annotated[Seconds, "the same in a quick search, which keeps what is plainly faster"] = 2.0
LATER: Annotated[Factor, "as long a window where steps become longer: the first ones show little of it"] = 3.0
PAUSES_PATIENCE: Annotated[float, "times as long", "that a diagnosis waits for a second evaluation"] = 4.0
RECURS: Annotated[Share, "of the loop in what recurs between steps, evaluation say, from which a trial holds one"] = 0.3
LONGEST_PERIOD_S: Annotated[Seconds, "from one to the next: a trial of more would leave no time for others"] = 30.0
LEAST_STEPS: Annotated[Steps, "timed in a run, where a step takes long"] = 12
QUICK_LEAST_STEPS: Annotated[Steps, "the same in a quick search"] = 6
MOST_STEPS: Annotated[Steps, "timed in a run, where a step takes next to nothing: the mean of more is no better"] = 2000
NEW_STEPS: Annotated[Steps, "timed where all samples are to be new: there may be few more in an epoch"] = 16
WARM_UP_STEPS: Annotated[Steps, "before the clock: kernels are chosen, allocators and page caches fill"] = 8
QUICK_WARM_UP_STEPS: Annotated[Steps, "the same in a quick search: most of it is done after the first"] = 4
FOLD_BATCHES: Annotated[
    int, "batches", "of samples that are met again and again: a change that keeps them pays only then"
] = 6
QUICK_FOLD_BATCHES: Annotated[int, "batches", "the same in a quick search: fewer are to be met before the clock"] = 4
LEAST_PAIRS: Annotated[Pairs, "of one there is no variance"] = 2
MOST_PAIRS: Annotated[Pairs, "at a time: others have their turn before a doubtful one is measured further"] = 5
FAIR_PAIRS: Annotated[Pairs, "with two, the interval of a 30 % gain is as wide as the gain"] = 3
MOST_PAIRS_IN_DOUBT: Annotated[Pairs, "spent on one change whose gain is not certain"] = 20
HOPELESS: Annotated[Factor, "as fast in the mean of the first pairs: below it, a gain is not pursued"] = 1.005
HOPE: Annotated[Factor, "as fast in one of only two pairs: then it is pursued all the same"] = 1.1
CONFIRM_PAIRS: Annotated[
    Pairs, "fresh ones that must show the gain: the best of many trials looks better than it is"
] = 2
LARGE_GAIN: Annotated[Factor, "as fast at least: so much that one fresh pair is enough"] = 1.3
PLAIN_GAIN: Annotated[
    Factor, "as fast at least, in the first trial of a quick search: chance alone does not reach it, fresh pairs or not"
] = 1.1
MOST_EPOCHS_TO_PAY: Annotated[
    int, "epochs", "by whose end what keeps samples has won back the first: many a fine-tuning has no more"
] = 3
COMPILES_S: Annotated[
    Seconds, "to be left for a change that compiles: 13 to 102 s in the first run, then the pairs"
] = 100.0
MOST_S_TO_PAY: Annotated[
    Seconds,
    "of the original's steps by whose end what compiles at each start has won that back: few trainings are less",
] = 300.0
LEAST_TRIAL_S: Annotated[Seconds, "for the pairs of a trial: in less, slow programs would come to no verdict"] = 40.0
TRIAL_SHARE: Annotated[Share, "of the budget, for the pairs of one trial: others are to have their turn"] = 1 / 8
START_S: Annotated[Seconds, "for imports and set-up, beyond what the steps themselves should take"] = 90.0
FORK_SERVER_START_S: Annotated[
    Seconds, "until a process that imports torch, to be forked, is given up: a cold disk takes a minute"
] = 90.0
STEPS_PATIENCE: Annotated[Factor, "as long as the steps should take: a change may make them slower"] = 4.0
TIMED_ATTEMPTS: Annotated[Runs, "when each was suspended in between: a laptop sleeps seldom"] = 3
SUSPENDED_S: Annotated[Seconds, "between two looks, which are a twentieth of a second apart: the machine slept"] = 2.0
STOP_PATIENCE_S: Annotated[Seconds, "from the clock's last step to the end of the process, which is then ended"] = 10.0
MOST_FAILURES: Annotated[Runs, "of a remedy that end with an error, before it has no further turn"] = 2

# The last comparison, of the original with all that was kept.
TOTAL_ORIGINAL_S: Annotated[Seconds, "of steps in a run of the original, at most: the pairs must fit the budget"] = 12.0
TOTAL_CHANGED_S: Annotated[Seconds, "of steps in a run of the changed program, if the original's allow it"] = 3.0
TOTAL_SHARE: Annotated[Share, "of what is set aside, for the steps of one run of the original"] = 1 / 8
TOTAL_PAIRS: Annotated[Pairs, "at most: their interval is narrow on all but very noisy machines"] = 6
LEAST_TOTAL_PAIRS: Annotated[Pairs, "the interval of two is wide by chance, or narrow by chance"] = 3
NARROW: Annotated[Factor, "upper over lower end of the interval: known well enough to be reported"] = 1.2

# From where on a remedy is proposed. Whatever it promises less than, its trial would show no gain.
LEAST_SHARE: Annotated[Share, "of the step, that what a remedy changes takes: without it, 1.05x"] = 0.05
LEAST_SHARE_OF_ALL: Annotated[
    Share, "the same of loops, attention and the making of samples, of which next to nothing may stay"
] = 0.03
LEAST_GROWING: Annotated[Share, "of a step that is sampled, in what makes it grow: later it is more"] = 0.02
LEAST_COLLECTING: Annotated[Share, "of the step in garbage collections: without them, the least gain"] = 0.02
LEAST_OPTIMIZER: Annotated[Share, "of the step in the optimizer: a fused one saves half of it, 1.02x"] = 0.04
LEAST_MODEL: Annotated[Share, "of the step in a model called for one item: less is hardly worth a rewritten loop"] = 0.1
LEAST_ARITHMETIC: Annotated[
    Share, "of the step in forward and backward: for less, half the precision is a high price"
] = 0.4
LEAST_LINE: Annotated[Share, "of the step: a line of less is a stray sample, not a place to change"] = 0.005
LEAST_BATCH: Annotated[int, "samples", "in a batch: fewer are indexed about as fast one by one"] = 4
QUEUEING: Annotated[Share, "of the step ready to run without a core: then fewer threads may be faster"] = 0.1

# What a remedy is expected to take away, by which those that promise most are tried first. A trial shows what it does.
VECTORIZED_LOOP_SAVES: Annotated[
    Share, "of the loop's time: array operations take some tens of nanoseconds an element less, seldom nothing"
] = 0.95
VECTORIZED_TENSORS_SAVES: Annotated[
    Share, "of the loop's time: an operator on many rows takes little longer than on one, until memory counts"
] = 0.9
COMPILED_LOOP_SAVES: Annotated[
    Share, "of the loop's time: less than of array operations, for the lists that go in and out"
] = 0.9
INDEXED_BATCH_SAVES: Annotated[
    Share, "of the making of batches: an index for all takes about as long as that for a few"
] = 0.8
CACHED_SAMPLE_SAVES: Annotated[Share, "of the time to make a sample: the rest reads it back from the page cache"] = 0.94
WATCHED_SAMPLE_SAVES: Annotated[
    Share, "of the time to make a sample: the rest copies it, and looks at what the dataset holds"
] = 0.9
REMEMBERING_SAVES: Annotated[Share, "of a function's calls, assumed to repeat: the trial shows how many"] = 0.6
READ_ONCE_SAVES: Annotated[Share, "of the time to read and parse: the rest is a look at the file's date"] = 0.97
READING_PARTS_SAVES: Annotated[Share, "of the time to read: files of many samples have hundreds"] = 0.95
FRAME_ROWS_SAVES: Annotated[
    Share, "of the time on these lines: an item takes a microsecond, a row of pandas thirty"
] = 0.9
SEPARATING_SAVES: Annotated[Share, "of a filter of 5 by 5 or more: two passes of 5 remain of 25 products"] = 0.6
CONTRACTING_SAVES: Annotated[Share, "of the products' time: a matrix product writes one element for each of a sum"] = (
    0.8
)
FACTORING_SAVES: Annotated[
    Share, "of the products' time: as many numbers as both sides have are read, and none kept"
] = 0.9
HOISTING_SAVES: Annotated[Share, "of what is computed again: all of it, where that loop is where it is"] = 0.8
UNREAD_SAVES: Annotated[Share, "of the calls' time: all but those whose results are read, one for each loop"] = 0.98
LISTED_ITEMS_SAVE: Annotated[Share, "of these lines: an item of a list takes a fiftieth of one of a tensor"] = 0.7
MADE_ONCE_SAVES: Annotated[Share, "of the time to make it: all but the first time"] = 0.98
JOINING_ONCE_SAVES: Annotated[Share, "of the time to join: of n pieces, n are copied once, and not n² / 2"] = 0.97
SPARE_ROOM_SAVES: Annotated[Share, "of the time to join: each row is copied a few times in all"] = 0.95
PARTS_AT_ONCE_SAVE: Annotated[Share, "of the slices' gradients: one as large as the whole is still written"] = 0.9
READING_LISTS_SAVES: Annotated[
    Share, "of the line's time, by experience: the least where lists hold numbers, nearly all where they hold arrays"
] = 0.8
LOOKING_UP_SAVES: Annotated[Share, "of the line's time: what is asked is still computed"] = 0.95
KEPT_RESULTS_SAVE: Annotated[Share, "of what was computed before: it is compared with what it was computed from"] = 0.8
KEPT_FEATURES_SAVE: Annotated[Share, "of a frozen part's time: samples are known by a digest, parameters compared"] = (
    0.9
)
FROZEN_COLLECTIONS_SAVES: Annotated[Share, "of the collections' time: what was made since is still looked at"] = 0.9
SPARSE_GRADIENTS_SAVE: Annotated[Share, "of the whole tables' gradients and updates: those of the rows used remain"] = (
    0.8
)
FLUSH_SAVES: Annotated[Share, "of what the step has grown by: nothing of it is left where all of it was subnormal"] = (
    0.9
)
ACTIVATIONS_TAKE: Annotated[
    Factor, "the peak of the run, for which there must be room: all activations may be several times the rest"
] = 5.0
KEPT_MEMORY_SAVES: Annotated[Share, "of the time for pages: those of the first steps are still taken"] = 0.9
LEAST_FAULTING: Annotated[Share, "of the step that the kernel takes to give pages: less is hardly measured"] = 0.05
ONE_TEAM_SAVES: Annotated[Share, "of the waiting: threads of one team still share the cores with the loader's"] = 0.9
NO_GRADIENTS_SAVES: Annotated[
    Share, "of the forward's time outside of training: what recording the graph costs, by experience"
] = 0.3
BATCHED_CALLS_SAVES: Annotated[Share, "of the model's time, at most: what is paid for each call is paid once"] = 0.9
BATCHED_CALLS_MAY_SAVE: Annotated[Share, "the same where neither the model's arithmetic nor more is known"] = 0.6
FUSED_ATTENTION_SAVES: Annotated[Share, "of the time of a module's own operators: written as matrix products"] = 0.6
FUSED_SPREAD_ATTENTION_SAVES: Annotated[Share, "the same written by broadcasting, which makes far larger tensors"] = 0.9
FUSED_OPTIMIZER_SAVES: Annotated[
    Mapping[str, Share], "of the optimizer's time: one kernel for all tensors, or one an operation"
] = {"fused": 0.6, "foreach": 0.3}
AUTOCAST_SAVES: Annotated[
    Mapping[str, Share], "of the model's time: products of bfloat16 that the processor has instructions for"
] = {"amx_bf16": 0.6, "avx512_bf16": 0.35}
GPU_AUTOCAST_SAVES: Annotated[
    Share, "of the model's time on a GPU: half the bytes, and tensor cores for the products"
] = 0.4
CHANNELS_LAST_SAVES: Annotated[
    Share, "of the convolutions' time: they need no other order of their images, and what is between them neither"
] = 0.2
COMPILED_MODEL_SAVES: Annotated[
    Share, "of the model's time that is not arithmetic at a good rate: operators are fused, and the model's Python goes"
] = 0.5
REACHED_PEAK: Annotated[
    Share, "of the machine's peak, that arithmetic of a good shape reaches: what takes longer is something else"
] = 0.3

# How far a remedy goes.
MOST_WORKERS: Annotated[
    int, "workers", "of a loader: each is a process with the program in it, and memory ends before cores do"
] = 32
THINNED: Annotated[tuple[int, ...], "steps a call of a callback", "round numbers, as people pick"] = (10, 20, 50, 100)
THINNED_TO: Annotated[Share, "of the step, that a callback may still take: a rarer one gains next to nothing"] = 0.02
BATCHED_ITEMS: Annotated[
    int, "items", "in one call of the model: what a call costs is then next to nothing an item"
] = 256
BATCHED_BYTES: Annotated[Bytes, "of input in one call: activations are many times that"] = 16 << 20
REMEMBERED_RESULTS: Annotated[
    int, "results", "of a function that are kept: many repeat within so many, and memory has an end"
] = 65536
PURE_DEPTH: Annotated[int, "calls inside each other", "followed to see that a function only computes"] = 6
BATCHED_DEPTH: Annotated[int, "methods inside each other", "followed to see what a loop's body changes"] = 4
NO_WEIGHT: Annotated[
    float, "score of attention", "that is as good as minus infinity: its weight is zero in float32"
] = -1e4

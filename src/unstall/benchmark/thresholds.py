"""Every number that decides what is measured, counted and kept of a run: its value, its unit, and why it is that."""

from __future__ import annotations

from typing import Annotated

from unstall.threshold import Bytes, Factor, Seconds, Share, Steps

Samples = Annotated[int, "stack samples"]
Rate = Annotated[int, "stack samples a second"]
Cores = Annotated[float, "cores"]

# Which steps are measured.
WARM_UP_STEPS: Annotated[
    Steps, "before any is counted or any stack is sampled; the report's own rule may drop more"
] = 5
SETTLED: Annotated[Factor, "the median step of the later half: what is longer at the beginning is warm-up"] = 1.3
MOST_WARM_UP: Annotated[Share, "of the steps: of a program that never settles, most are measured all the same"] = 0.2
FEWEST_UNDISTURBED: Annotated[Steps, "undisturbed, below which sampled ones count as well"] = 5
LONGER_ON_THE_WHOLE: Annotated[
    Factor, "the mean of the undisturbed, in medians: else the long ones do not fit between the windows"
] = 1.1
MOSTLY_HELD_UP: Annotated[Share, "of a step in which unstall held it up: with more, its length says nothing"] = 0.5
MAIN_LOOP: Annotated[
    Share, "of the time in which the model runs: optimizer steps that fill less are not the program's main loop"
] = 0.2
ENV_STEPS: Annotated[float, "steps of an environment", "for each of the optimizer: with fewer, it only evaluates"] = 0.2
FILLS_A_BUFFER: Annotated[
    Factor, "the most steps of an environment between two updates, that come before the first: no rollout is as long"
] = 2.0
EVALUATED: Annotated[
    Share, "of the updates for each step of the environment that is learned from most: in one with fewer, none is"
] = 0.1
FEWEST_UPDATES: Annotated[int, "updates", "that tell where a program learns from where it only looks"] = 10
TAKES_TURNS: Annotated[
    Share, "of the calls of the model, or optimizer, that is called most: what is called less does not count steps"
] = 0.5
SAME_LOOP: Annotated[
    Factor, "as long a call, or as far from one to the next: of another loop that is as fast, the verdict is alike"
] = 1.5
TURNS: Annotated[
    Share, "of the calls of an optimizer or model before or after which another's come: more is in turn"
] = 0.25
RELAY_CALLS: Annotated[
    int, "calls", "in a row, in the mean, before another optimizer or model has its turn: parts of one step have one"
] = 2
RELAY_SUBJECTS: Annotated[
    int, "optimizers or models", "that train in turn, each for some steps: two may be a critic and a generator"
] = 3
SAME_LOOP_CALLS: Annotated[int, "calls", "of an optimizer or model, whose pace can be told"] = 8
ONCE_MORE: Annotated[
    int, "stretches", "of an optimizer's calls between those of the main loop: with more, both are one loop"
] = 2
UNHINDERED: Annotated[
    int, "per cent of the steps", "in which it is taken that nothing keeps a team of threads from running: the quickest"
] = 10

# Time between the steps, or in few of them.
LONG: Annotated[Factor, "the median step, from which a step holds something else as well, if that recurs"] = 10.0
RARE: Annotated[Share, "of the steps up to which that is the case: what is more frequent is part of training"] = 0.05
NOTABLE_BETWEEN: Annotated[
    Share, "of the mean step below which it is not worth a word: mean and median differ by more"
] = 0.05

# Steps that become slower.
SLOWING_STEPS: Annotated[Steps, "two in each of the blocks: fewer cannot be told from their noise"] = 48
SLOWING_BLOCKS: Annotated[
    int, "blocks of steps", "twelve in each half: Kendall's test at 80 % then asks for two pairs of three to rise"
] = 24
IN_ALL: Annotated[float, "confidence", "that the whole grows: one steady program in a thousand may be accused"] = 0.999
IN_HALVES: Annotated[
    float,
    "confidence",
    "that each half grows: a jump alone passes once in a hundred, and busy neighbours hide no growth",
] = 0.8
LEAST_SLOWING: Annotated[Share, "of the step, over the run: less is within a machine's drift as it warms up"] = 0.15
NEIGHBOURS: Annotated[
    Cores, "that other programs hold, from where on the two threads of one physical core may be shared with them"
] = 0.5
SLOWING_BESIDE_NEIGHBOURS: Annotated[
    Share, "least growth beside them: a shared core makes a step twice as long, which no scheduler counts as waiting"
] = 1.0
GOES_ON: Annotated[
    Share, "of the rate in the first half that the second must reach: what fills up, slows down. As of memory's growth"
] = 0.4
IN_ONE_PHASE: Annotated[Share, "of the growth that one phase must hold to be named for it"] = 0.6
UNLIKE_THE_REST: Annotated[
    Share, "of that phase's relative rate: if the others grow faster than so, the whole step has become slower"
] = 0.5
NEARLY_ALL_GROWTH: Annotated[Share, "of the growth in one phase, with which a step that is multiplied is its own"] = (
    0.85
)
MULTIPLIED: Annotated[Factor, "a step of the first block, at the end: a machine seldom becomes so much slower"] = 2.5
NO_REST: Annotated[Share, "of a step in other phases, below which they say nothing"] = 0.1

# Memory that grows.
PROBE_AFTER_S: Annotated[
    tuple[float, ...],
    "seconds of the loop",
    "further and further apart: a look takes time, and what grows is seen the better the longer it has grown",
] = (0.5, 1.5, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0, 89.0, 233.0, 610.0, 1597.0)
PROBE_GROWTH_BYTES: Annotated[Bytes, "more than at first, from which a look is worth its time"] = 4 << 20
PROBE_SLOWER: Annotated[Share, "of the first rate of steps: then what is kept may be why"] = 0.9
PROBE_PATIENCE_S: Annotated[Seconds, "for an answer, which comes with the next step: then no more is expected"] = 10.0
GRAPH_NODE_BYTES: Annotated[
    Bytes, "that an autograd node is taken to hold at least, to rank graph growth beside plain bytes"
] = 512
GROWING_SHARE: Annotated[Share, "of the intervals between looks in which what is called growing grows"] = 0.8
KEPT_SHARE: Annotated[Share, "of all its rises that it must keep: what falls back again is a cache or a buffer"] = 0.5
GROWING_MOMENTS: Annotated[
    int, "moments", "at which what a line left behind was allocated: two may be a start and an end"
] = 3
GROWING_SPAN: Annotated[Share, "of the program's progress over which they are spread: a growth takes its time"] = 0.2
GROWING_END: Annotated[Share, "of the progress after which the last must be: what is loaded once is no growth"] = 0.75
GROWING_LINE: Annotated[Share, "of the first line's bytes: lines with less are not named"] = 0.01
MOST_GROW: Annotated[
    Share, "of a model's calls given one token more than the one before, with no cache: with one, none is"
] = 0.5

# The stack samples.
HALF_WIDTH: Annotated[
    float, "half of a 95 % interval", "of the largest shares, at which sampling ends: more tell nothing more"
] = 0.03
MOST_PAUSE_WINDOWS: Annotated[int, "windows", "in pauses of the loop, beside what is due: a second each"] = 12
LONG_PAUSE_S: Annotated[Seconds, "without a step, from which the loop stands still"] = 0.5
LONG_PAUSE_STEPS: Annotated[float, "steps", "that would have been made in a pause: fewer are a slow step"] = 10.0
MOST_SAMPLES: Annotated[Samples, "of one main thread, after which it ends in any case"] = 1100
FEWEST_WINDOWS: Annotated[int, "windows", "so that one odd second of the program is not taken for all of it"] = 3
SAMPLE_RATE: Annotated[Rate, "of each process: ten milliseconds apart, a stopped program is not noticed"] = 100
LEAST_SAMPLE_RATE: Annotated[Rate, "of each of very many processes: fewer would tell nothing within a window"] = 20
SAMPLES_PER_CORE: Annotated[
    Rate,
    "of all processes together for each core there is: of half a millisecond each (measured, with eight loader "
    "workers), they take a fifteenth of the cores while a window lasts",
] = 125
FEWEST_IN_LOOP: Annotated[Samples, "of the loop: with fewer, those after its last step count as well"] = 20
MOST_CUT: Annotated[Share, "of a thread's stacks, cut at one function: what more of them begin with is their root"] = (
    0.25
)
LEAST_ROOT: Annotated[Share, "of a thread's stacks that begin where nothing calls: in a library, fewer are cut"] = 0.05
MOST_LOST: Annotated[int, "unreadable stacks", "for each cut one: about five are usual; more have another reason"] = 10
SAMPLE_ATTEMPTS: Annotated[int, "failures in a row", "a process that is just starting cannot be read yet"] = 3
SAMPLER_STOP_S: Annotated[Seconds, "for py-spy to end: it writes its file within milliseconds of a SIGINT"] = 2.0
SAMPLER_STUCK_S: Annotated[Seconds, "beyond a window: py-spy has no core then, and will have none"] = 10.0
SAMPLES_WANTED: Annotated[Samples, "for a culprit, before a run is stopped after its steps"] = 120
SAMPLES_PATIENCE_S: Annotated[Seconds, "beyond the last step asked for, for those samples"] = 20.0
NO_STEP_YET_S: Annotated[Seconds, "then stacks are sampled all the same: they tell what the program does"] = 3.0
ATTACH_LIMIT_S: Annotated[Seconds, "for the first stack of a trial: py-spy starts within a second or two"] = 10.0
ANSWER_PATIENCE_S: Annotated[Seconds, "for a running program's main thread to begin its recording"] = 15.0
OTHER_ANSWERS_S: Annotated[Seconds, "for the other processes, once one has begun"] = 3.0
SHORTEST_LOOK_S: Annotated[
    Seconds, "at a running program: shorter, one that hangs looks like one that waits for a slow disk"
] = 5.0

# The device, and the machine.
GPU_WINDOW_AFTER: Annotated[Steps, "operators and modules are counted before"] = 12
GPU_AT_WORK: Annotated[
    Share, "utilization from which a look says how fast a device computes: one that idles lowers its clock itself"
] = 0.3
CEILINGS_LIMIT_S: Annotated[Seconds, "for torch's own speeds: importing it takes half a minute on a slow disk"] = 180.0

# The rate of steps, and whether a run goes on.
MANY_STEPS: Annotated[Steps, "are enough to tell their rate in half a second"] = 50
RATE_S: Annotated[Seconds, "over which a rate is told where steps are many"] = 0.5
RATE_OF_FEW_S: Annotated[Seconds, "over which it is told where they are few"] = 2.0
FIRST_RATE_S: Annotated[
    Seconds, "of the loop, whose best rate is its first: libraries that come in with the first steps hold them up"
] = 3.0
WATCHED_RATE_S: Annotated[Seconds, "over which a person who looks on sees it: steady, and not of the past"] = 3.0
LEAST_WATCHED_RATE_S: Annotated[Seconds, "that must have passed for any rate: of less, one step decides"] = 0.2
POLL_S: Annotated[Seconds, "between two polls of a run: a window of stack samples ends as late as that"] = 0.1
SELDOM_POLL_S: Annotated[Seconds, "the same of a long run: a poll costs a busy core a millisecond"] = 0.25
LOOK_S: Annotated[Seconds, "between two looks at what a program uses of the machine"] = 0.25
SELDOM_LOOK_S: Annotated[Seconds, "the same of a long run, whose means rest on hundreds of looks"] = 0.5
LONG_RUN_S: Annotated[Seconds, "after which a run is a long one"] = 20.0
SETTLED_FOLDER_NS: Annotated[int, "nanoseconds", "since the last change of a folder: the next one has another time"] = (
    1_000_000_000
)
JUST_STARTED_S: Annotated[Seconds, "in which a run without a recording may still be importing its libraries"] = 120.0
STOP_PATIENCE_S: Annotated[
    Seconds, "for a program that was asked to stop at a step, and again after SIGTERM: it may be saving its weights"
] = 8.0
SIGNAL_GRACE_S: Annotated[Seconds, "between the first process that a signal to a group reaches and the last"] = 0.05
ORPHANS_PATIENCE_S: Annotated[
    Seconds, "for processes that outlive it: loader workers look for their parent every 5 s"
] = 6.0

# Operators of the early cycles.
ZERO_ROWS: Annotated[
    Share, "of a line's backward that multiplies by zeros, from which rows are meant: they are not needed in forward"
] = 0.5

# Several machines.
CLOCK_BLOCKS: Annotated[int, "blocks of calls", "whose medians give a clock's drift: a disturbed one is outvoted"] = 16
CALLS_IN_BLOCK: Annotated[int, "calls", "in a block, for a median that one of them does not move"] = 8
FEWEST_CALLS: Annotated[int, "calls in common", "fewer give a median that one disturbed call moves"] = 5
MOST_KINDS: Annotated[int, "kinds of calls", "the most frequent: a clock needs one, and not all machines have each"] = 3
MOST_OF: Annotated[Share, "of the steps, or calls, of the rank that made the most: the others ended early"] = 0.9

# What is kept.
NEEDED_BYTES: Annotated[Bytes, "that a folder must take to hold a run: a recording's first megabytes"] = 4 << 20
KEPT_STEPS: Annotated[Steps, "of a longer run the last so many: tens of megabytes, unpacked"] = 4_000_000
KEPT_FETCHES: Annotated[int, "batches", "of more, every n-th is kept: a loader's law shows in fewer"] = 200_000
MOST_ARCHIVE_BYTES: Annotated[
    Bytes, "that an archive may take uncompressed; more is refused, on writing and on reading"
] = 1 << 29
MOST_POINTS: Annotated[
    int, "looks at resources", "more are thinned: a run of days takes no more memory than one of hours"
] = 40_000
THINNED: Annotated[
    Share, "of them, to which leaving out every other must come: else last points are left out as well"
] = 0.95
MEMORY_POINTS: Annotated[int, "looks at memory", "from which its growth is told: more show it no better"] = 2000
THOROUGH_EVERY: Annotated[int, "looks", "in between, only main threads are asked for new children"] = 4
MOST_DELAYED_THREADS: Annotated[
    int, "threads", "of one process, asked how long they waited for a core at each look"
] = 64
MOST_BUSY_THREADS: Annotated[int, "threads", "of a running program, told apart by the cores they take"] = 3

# What is left of a step runs on warmer caches: fitted to experiments on tests/zoo, by ``bench/predictions.py``.
WARMS: Annotated[float, "in logarithms", "faster, for each e-fold that a thread's work shrinks by"] = 0.12
LINES_PER_S: Annotated[
    float,
    "in logarithms",
    "faster, for each second that a line of memory costs less: lines fetched in a second of work",
] = 1.5e6
LEAST_REFETCH_S: Annotated[Seconds, "of a line of memory where next to nothing is left of a step"] = 60e-9
REFETCH_GROWS: Annotated[float, "seconds a second", "that a line costs more where more is left of a step"] = 6e-6
MOST_WARMED_S: Annotated[Seconds, "of a step, that warm caches save: about the most that was seen"] = 6e-3

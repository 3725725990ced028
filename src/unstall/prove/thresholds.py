"""The numbers that a proof rests on, each with its reason."""

from __future__ import annotations

from unstall.optimize import thresholds as optimize
from unstall.threshold import Threshold

LEAST_GAIN = Threshold(optimize.LEAST_GAIN, "times faster: less is not worth a changed line, as in `unstall optimize`")
LEAST_PAIRS = Threshold(3, "the interval that holds whenever one looks is infinite for two")
MOST_PAIRS = Threshold(24, "a gain that needs more pairs is less than a few per cent on a machine that noisy")
MOST_PAIRS_IN_DOUBT = Threshold(12, "a gain that differs by chance between kinds of runs agrees within as many")
STRESS = Threshold(1000, "times the outputs of a model: exp() overflows beyond 88, and fewer than 88 are common")
LESS_UNDER_STRESS = Threshold(
    0.01, "of a loss of large outputs that another way to compute it may be below: there rounding is far smaller"
)
LARGER_WHERE_CALM = Threshold(
    2.0, "times the norm of a gradient of small outputs: rounding moves it by far less, a limit that is none by decades"
)
LOSS_PARTS = Threshold(4, "that a loss is divided by, as where four batches are added up: no rounding comes of it")
APART_WHERE_SCALED = Threshold(
    0.1, "of a gradient of a part of a loss that another may be off by: rounding is far less, the whole loss's is 3"
)
LEAST_GRADIENT = Threshold(1e-6, "of a norm: where gradients cancel out, what is left is rounding")
LOOK_STEPS = Threshold(12, "the first steps tell a plain difference within seconds; `unstall optimize` judges as many")
WATCHED_SHARE = Threshold(
    0.25, "of the seconds gained unwatched that must be gained in watched runs as well: noise takes some, not most"
)
RESEEDED_SHARE = Threshold(
    0.75, "of the seconds gained under the program's seeds that must be gained under others, which take as long"
)
MOST_OTHER_SEEDS = Threshold(
    5, "a rare case in the data that comes under the program's own seeds alone passes for a trick, once in 15 at worst"
)
LEAST_GROWTH = Threshold(
    0.02, "of the resident memory in the last half of a run: an allocator that gives back late moves it by less"
)
RISING = Threshold(
    2.0, "times as many calls in the last quarter of a run as in the first: one more for each step makes it 7"
)
IN_PROPORTION = Threshold(
    0.15, "of as many times the first: samples differ in length, and what a model finds is in no proportion to time"
)
GROWTH_OVER = Threshold(3.0, "times the original's own growth: less is the same growth, seen through noise")
LEAST_EPOCHS = Threshold(2, "after the first a cache is full, and what is kept still is none")
KEPT_OF_BATCHES = Threshold(
    0.25, "of the batches after the first epoch: single ones that are kept for a look are fewer"
)
CONSTANT = Threshold(
    0.618034,
    "of what a constant is: another setting, no extreme one, and on no ratio of small numbers, where float32 and "
    "Python's numbers go apart",
)
LEAST_LIMIT = Threshold(8, "a limit that no run comes to is not smaller; columns, channels and orders are")
LEAST_RISE = Threshold(48e6, "bytes more for one very long sample: less is how allocators round, from run to run")
FIGURES_OVER_NUMBERS = Threshold(
    4.0, "times as far as the model's own numbers that printed figures may be off, in units of their noise"
)
ROUNDING_LEARNED = Threshold(
    2, "times in a proof that four runs more may show it: under its own seeds, and under others"
)
LEAST_ROUNDING = Threshold(
    1 / 16, "of the limit: 8 times the noise, which a figure seen in four runs may exceed by chance"
)
SLOWER = Threshold(3.0, "times the original's whole run: a changed program that still runs then is not faster")
SLOWER_GRACE_S = Threshold(30.0, "beside that factor, for the start of a short program")
ONE_SIDED = Threshold(20, "figures that differ, all in one direction: rounding does that once in a million texts")
SAME_RESULT = Threshold(1e-4, "of a number that a function gives, or in all: rounding of float32 adds up to less")
AS_LATE = Threshold(1.25, "times the seconds at which, or after which, the original saves: a timer fires between steps")
OUTLIVES_S = Threshold(0.5, "seconds after the program's end: helpers that notice it end within a few tenths")
SAME_SIZE = Threshold(0.02, "of a file's bytes: the same numbers with other words around; half precision takes half")
MORE_CPU = Threshold(2.0, "times the cores' seconds: threads that wait for each other take some more, not twice")
MORE_CPU_S = Threshold(1.0, "seconds of the cores beside that factor: helpers that start take some tenths")
MANY_THREADS = Threshold(64, "at once: pools are not larger; what has more has one for each row or file")
MORE_THREADS = Threshold(4.0, "times the original's: of a program that has many already")
MANY_DESCRIPTORS = Threshold(512, "at once: half of what a process may have open on most machines")
MORE_DESCRIPTORS = Threshold(4.0, "times the original's: of a program that has many open already")
FUNCTIONS_RAISED = Threshold(2, "in a proof, two runs each: those that a change calls in another way are few")
HOLDS_LOCK = Threshold(0.2, "of a run, most of which may be importing: who writes under a lock holds it for a moment")
LEAST_FOR_OTHERS = Threshold(16, "bytes of a file that somebody may look at: Python tries a temporary folder with four")
LESS_FOR_OTHERS = Threshold(0.5, "of the bytes in files for others: the same lines in fewer digits take more")
SPREAD = Threshold(3.0, "times the range of the original's own runs that a figure which varies by itself may be off")
RUNS_OF_SPREAD = Threshold(
    6, "of the original: the range of two is exceeded by every second honest run, that of six by few"
)
MOST_COMPARED_BYTES = Threshold(4 << 20, "longer texts are compared by their digests alone, not line by line")
MOST_FILES = Threshold(20_000, "in a folder to compare with: more are data, and belong outside")

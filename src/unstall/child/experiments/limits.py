"""How much the experiments keep and look at in the user's process: each limit, its unit, and why it is that.

Standard library only.
"""

from __future__ import annotations

from typing import Annotated

Seconds = Annotated[float, "seconds"]
Bytes = Annotated[int, "bytes"]
Answers = Annotated[int, "answers of a call site"]

# Recorded answers.
ANSWERS: Annotated[Answers, "calls let through before a stub answers: all alike would hide what varies"] = 3
ENV_ANSWERS: Annotated[Answers, "of an environment: episodes end about as often as they did"] = 32
COLLECTING_S: Annotated[Seconds, "for so long more are kept: three words do not tell how long words are"] = 0.25
MOST_ANSWERS: Annotated[Answers, "beyond it they say nothing new"] = 4096
MOST_ANSWER_BYTES: Annotated[Bytes, "of a call site: little beside what a training program takes"] = 64 << 20
DEPTH: Annotated[int, "levels of nesting", "within which an answer is copied"] = 4
MOST_SITES: Annotated[int, "call sites of a function", "more share the first one's record"] = 4096
SMALL_BYTES: Annotated[Bytes, "copied sooner than a Python function of autograd is called"] = 16 << 10
BACKWARD_CALLS: Annotated[int, "calls", "that backward really makes first: the second has all gradients"] = 2
SAMPLED_ELEMENTS: Annotated[int, "elements of an argument", "that are compared before and after a call"] = 64

TIMING_S: Annotated[Seconds, "in which a stub's answer is timed: no step is measured meanwhile"] = 0.002
TIMED_TOGETHER: Annotated[int, "answers", "timed together: one takes about as long as reading the clock"] = 8

# Recorded batches.
BATCHES: Annotated[int, "batches", "kept of each loader"] = 6
LEAST_BATCHES: Annotated[int, "batches", "from which on a loader can be answered for"] = 2
MOST_LOADERS: Annotated[int, "places", "where loaders are iterated: a program that makes many forgets the oldest"] = 32

LEAST_DELAY_S: Annotated[Seconds, "shorter sleeps are mostly overshoot: they are saved up"] = 0.001

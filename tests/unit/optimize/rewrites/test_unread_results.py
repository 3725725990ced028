"""Calls in loops whose results nobody reads, and those that somebody does or that do something else."""

from __future__ import annotations

import pytest
from optimize_builders import make_module

from unstall.optimize.rewrites.unread_results import unread_calls, without

METRICS = """\
import logging

import numpy as np
import wandb

total = 0


class Scores:
    def __init__(self):
        self.scores, self.calls = [], 0

    def add(self, score):
        self.scores.append(score)

    def compute(self):
        scores = np.concatenate([self.scores])
        return scores.mean(), highest(scores)

    def counted(self):
        self.calls += 1
        return self.calls

    def drained(self):
        return self.scores.pop()

    def told(self):
        logging.info("scores")
        return len(self.scores)

    def logged(self):
        return wandb.sum(self.scores)

    def drawn(self):
        return np.random.rand(3)

    def shortened(self):
        scores = self.scores
        scores.pop()
        return scores

    def saved(self):
        return np.save("scores.npy", self.scores)

    def checked(self):
        assert self.scores
        return self.scores


def highest(scores):
    return float(max(scores))


def run(rows, scores, verbose=False, last=None):
    log = []
"""


def program(body):
    return METRICS + "".join(f"    {line}\n" for line in body.splitlines()) + "    return log\n"


def left_out(body):
    module = make_module(program(body))
    found = list(unread_calls(module))
    assert len(found) <= 1
    return without(module, found[0]).code if found else None


def result(source):
    space = {"__name__": "program"}
    exec(compile(source.replace("import wandb\n", ""), "program.py", "exec"), space)
    return space["run"]([0.5, 2.0, 1.0], space["Scores"]())


LOOP = "for row in rows:\n    scores.add(row)\n    {line}\n{after}"
READ = "mean, best = scores.compute()\nlog.append((mean, best))"


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (LOOP.format(line="mean, best = scores.compute()", after=READ), "        scores.add(row)\n    mean, best"),
        (
            LOOP.format(line="if verbose:\n        mean, best = scores.compute()", after=READ),
            "add(row)\n    mean, best",
        ),
        (
            LOOP.format(line="if highest([row]):\n        mean, best = scores.compute()", after=READ),
            "if highest([row]):\n            pass\n",
        ),
        (
            LOOP.format(
                line="if verbose:\n        mean, best = scores.compute()\n    else:\n        log.append(1)", after=READ
            ),
            "if verbose:\n            pass\n",
        ),
        (
            LOOP.format(line="best = highest([row, row])", after="log.append(1)\nbest = 3\nlog.append(best)"),
            "add(row)\n    log",
        ),
        (
            "for epoch in range(2):\n    for row in rows:\n        scores.add(row)\n        mean, best = scores.compute()\n"
            "    mean, best = scores.compute()\n    log.append(best)",
            "            scores.add(row)\n        mean, best",
        ),
        (
            "for epoch in range(2):\n    for row in rows:\n        best = highest([row])\n        break\n"
            "    best = 2 * epoch\n    log.append(best)",
            "for row in rows:\n            break\n",
        ),
    ],
)
def test_a_call_whose_result_nobody_reads_is_left_out(body, wanted):
    changed = left_out(body)
    assert changed is not None and wanted in changed
    assert result(changed) == result(program(body))


@pytest.mark.parametrize(
    "body",
    [
        LOOP.format(line="mean, best = scores.compute()", after="log.append(best)"),  # read after the loop
        LOOP.format(line="mean, best = scores.compute()", after="best = 1\nlog.append(best)"),  # half bound anew
        LOOP.format(line="mean, best = scores.compute()", after="if verbose:\n    mean, best = 1, 2\nlog.append(best)"),
        LOOP.format(line="mean, best = scores.compute()\n    log.append(best)", after=READ),
        LOOP.format(line="mean, best = scores.compute()", after="log.append(lambda: best)\n" + READ),
        "best = 0\n" + LOOP.format(line="log.append(best)\n    best = highest([row])", after="best = 1"),
        "while not log or best < 1:\n    log.append(1)\n    best = highest(rows)\nbest = 1",
        LOOP.format(line="last = scores.counted()", after="last = 1"),
        LOOP.format(line="last = scores.drained()", after="last = 1"),
        LOOP.format(line="last = scores.told()", after="last = 1"),
        LOOP.format(line="last = scores.logged()", after="last = 1"),
        LOOP.format(line="last = scores.drawn()", after="last = 1"),
        LOOP.format(line="last = scores.checked()", after="last = 1"),
        LOOP.format(line="last = scores.shortened()", after="last = 1"),
        LOOP.format(line="last = scores.saved()", after="last = 1"),
        "import contextlib\nwith contextlib.suppress(ValueError):\n    for row in rows:\n        best = highest([row])\n    best = 1\nlog.append(best)",
        LOOP.format(line="last = highest([log.pop()])", after="last = 1"),
        LOOP.format(line="last = highest(next(rows))", after="last = 1"),
        LOOP.format(line="log[0] = highest(rows)", after="last = 1"),
        LOOP.format(line="last = verbose(rows)", after="last = 1"),
        "try:\n    for row in rows:\n        best = highest([row])\n    best = 1\nexcept ValueError:\n    log.append(best)",
        LOOP.format(line="best = highest([row])", after="else:\n    log.append(best)\nbest = 1"),
        "best = highest(rows)\nbest = 2",  # no loop
        "for epoch in range(2):\n    for row in rows:\n        best = highest([row])\n    if epoch:\n        break\n"
        "    best = 1\nlog.append(best)",  # the end of the outer loop comes first
        LOOP.format(line="best = highest(rows)", after="best = 1\nlog.append(locals())"),
    ],
)
def test_what_is_read_or_does_more_stays(body):
    assert left_out(body) is None


def test_names_of_the_module_are_read_by_its_functions():
    source = "def show():\n    print(best)\n\n\ndef high(rows):\n    return max(rows)\n\n\nfor row in [[1]]:\n    best = high(row)\nbest = 2\n"
    assert not list(unread_calls(make_module(source)))
    assert list(unread_calls(make_module(source.replace("print(best)", "print(row)"))))


IMPORTS = """import math
import numpy as np
import scipy.stats as stats
import torch
import torch.nn as nn
import torch.nn.functional as F

"""


def unread_call_of(value):
    source = f"def high(scores):\n    return {value}\n\n\nfor row in [[1]]:\n    best = high(row)\nbest = 2\n"
    return list(unread_calls(make_module(IMPORTS + source)))


@pytest.mark.parametrize(
    "value",
    [
        'open("scores.txt", "w")',
        'setattr(scores, "best", 1)',
        'exec("1")',
        "input()",
        "next(scores)",
        "iter(scores)",
        "super().high()",
        "list(map(print, scores))",
        "max(scores, key=print)",
        "scores.__setitem__(0, 1)",
        "scores.partition(2)",
        "scores.sort()",
        "scores.log()",
        "scores.round(out=scores.rounded)",
        "np.copyto(scores, 1)",
        "np.fill_diagonal(scores, 0)",
        "np.put(scores, [0], 1)",
        "np.add(scores, 1, out=scores.sums)",
        "np.apply_along_axis(print, 0, scores)",
        'np.memmap("scores.bin", mode="w+", shape=3)',
        "nn.init.zeros_(scores)",
        "nn.Linear(2, 3)",
        "F.relu(scores, inplace=True)",
        "torch.relu_(scores)",
        "torch.autograd.backward(scores)",
        "torch.distributed.broadcast(scores, 0)",
        "torch.cuda.synchronize()",
        "stats.norm.rvs(3)",
    ],
)
def test_a_function_that_does_more_than_compute_is_called(value):
    assert not unread_call_of(value)


@pytest.mark.parametrize(
    "value",
    [
        "max(scores, key=lambda score: -score)",
        "sorted(set(scores))",
        "[float(score) for score in scores]",
        "math.log(scores[0])",
        "np.log(np.sort(scores))",
        "np.linalg.norm(scores)",
        "np.append(scores, 1)",
        "torch.stack(scores).float().mean().item()",
        "F.softmax(torch.add(scores, 1), dim=-1)",
        "stats.spearmanr(scores, scores)",
        "scores.round()",
    ],
)
def test_a_function_that_only_computes_may_be_left_out(value):
    assert unread_call_of(value)

"""The runs of a proof: of which side, under which plan, and within which time."""

from __future__ import annotations

import copy
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from unstall.optimize import thresholds as rounding
from unstall.prove import thresholds
from unstall.prove.runner import WholeRun
from unstall.prove.timing import ProofPair
from unstall.prove.trees import Files, Sides
from unstall.records.proof import ProofVerdict

_SEED = 20260101
_LARGE_BATCH = 5  # samples: of fewer, no number between 2 and what leaves one is left to draw

Shorter = Literal["", "samplers", "datasets"]
"""What leaves a sample of each epoch out: torch's samplers, or the datasets, whose length samplers ask for."""


class ProofEnded(Exception):
    """The proof has ended early, with a verdict and its reason."""

    def __init__(self, verdict: ProofVerdict, reason: str, **facts: Any):
        super().__init__(reason)
        self.verdict, self.reason, self.facts = verdict, reason, facts


class UnstallFailed(ProofEnded):
    """Unstall itself has failed in a run: what it should have changed or seen there it has not."""

    def __init__(self, failure: str):
        """``failure``: in one line."""
        super().__init__("inconclusive", f"unstall itself failed in a run: {failure}; please report this")
        self.failure = failure


class OriginalFailed(Exception):
    """The original cannot be run."""


class SideRunner(Protocol):
    """What :class:`unstall.prove.runner.SandboxedRunner` does."""

    def run(self, files: Files, plan: Mapping[str, Any], *, timeout: float, keeps_files: bool = False) -> WholeRun:
        """Run a side."""


@dataclass
class Runs:
    """Runs both sides within a budget."""

    runner: SideRunner
    sides: Sides
    budget_s: float
    clock: Callable[[], float] = time.monotonic
    longest_s: float = 0.0
    """Seconds of the longest of the original's whole runs so far."""
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    def over(self, sides: Sides) -> Runs:
        """Runs of other sides, within the same budget."""
        runs = copy.copy(self)
        runs.sides = sides
        return runs

    def original(self, plan: Mapping[str, Any]) -> WholeRun:
        """Run the original. Raises ProofEnded when the budget is spent, OriginalFailed where it does not end well."""
        run = self.run(self.sides.original, plan, self.remaining())
        if run.effects.status and not plan.get("perturb"):
            last = f": {run.effects.last_line}" if run.effects.last_line else ""
            raise OriginalFailed(f"the original ends with exit code {run.effects.status}{last}")
        if not plan.get("clock", {}).get("steps"):
            self.longest_s = max(self.longest_s, run.seconds)
        return run

    def changed(self, plan: Mapping[str, Any], original_s: float) -> WholeRun:
        """Run the changed program, no longer than what is no slower by far than the original's run."""
        return self.run(self.sides.changed, plan, self._limit(original_s))

    def perturbed(self, plan: Mapping[str, Any]) -> list[WholeRun]:
        """Runs of the original that are off by one unit in the last place; those that fail tell nothing."""
        runs = []
        for seed in range(int(rounding.PERTURBED_RUNS)):
            with suppress(OriginalFailed):
                runs.append(self.original({**plan, "perturb": {"seed": seed}}))
        return runs

    def timed(self, shift: int | None, *, changed_first: bool, keeps_files: bool) -> ProofPair:
        """A run of each side that nothing watches."""
        sides = (self.sides.original, self.sides.changed)
        limit = self._limit()
        runs = [
            self.run(files, reseeded(shift), limit, keeps_files=keeps_files)
            for files in (reversed(sides) if changed_first else sides)
        ]
        original, changed = reversed(runs) if changed_first else runs
        self.longest_s = max(self.longest_s, original.seconds)
        return ProofPair(original, changed, shift)

    def may_fail(self, files: Files, plan: Mapping[str, Any]) -> WholeRun:
        """Run a side under a plan that may make it fail; that it does not end by itself is no end of the proof.

        Raises ProofEnded when the budget is spent, UnstallFailed.
        """
        run = self._run(files, plan, self._limit())
        if run.timed_out and self.remaining() <= 0:
            raise ProofEnded("inconclusive", "the budget is spent", more_s=self.budget_s)
        return run

    def run(self, files: Files, plan: Mapping[str, Any], timeout: float, *, keeps_files: bool = False) -> WholeRun:
        """Run a side.

        Raises ProofEnded when the budget is spent, or a changed program takes too long to be faster; UnstallFailed.
        """
        run = self._run(files, plan, timeout, keeps_files=keeps_files)
        if not run.timed_out:
            return run
        if files is self.sides.changed and self.remaining() > 0:
            raise ProofEnded("not-faster", f"it had not ended after {run.seconds:.0f} s, far beyond the original")
        raise ProofEnded("inconclusive", "the budget is spent", more_s=self.budget_s)

    def _run(self, files: Files, plan: Mapping[str, Any], timeout: float, *, keeps_files: bool = False) -> WholeRun:
        """Run a side, whatever becomes of it. Raises UnstallFailed."""
        run = self.runner.run(files, plan, timeout=max(timeout, 0.0), keeps_files=keeps_files)
        if run.failures:
            raise UnstallFailed(run.failures[0])
        return run

    def remaining(self) -> float:
        """Seconds of the budget that are left."""
        return self.budget_s - (self.clock() - self.began)

    def need(self, seconds: float) -> None:
        """Raise ProofEnded where the budget will not do."""
        lacking = seconds - self.remaining()
        if lacking > 0:
            reason = f"whole runs take too long for this budget: about {lacking:.0f} s more are needed"
            raise ProofEnded("inconclusive", reason, more_s=lacking)

    def _limit(self, original_s: float = 0.0) -> float:
        """Seconds that a run may take which is no slower by far than the original's."""
        known = max(self.longest_s, original_s)
        usual = thresholds.SLOWER * known + thresholds.SLOWER_GRACE_S if known else math.inf
        return min(self.remaining(), usual)


def plan_of(
    kind: str,
    *,
    steps: int | None = None,
    shift: int | None = None,
    shorter: Shorter = "",
    left_out: int = 1,
    by_sample: bool = True,
) -> dict[str, Any]:
    """The plan of a run that is watched.

    Args:
        kind: what counts as a step; empty where the program makes none.
        steps: after how many it ends; None for a whole run.
        shift: by how much the program's seeds are changed.
        shorter: by what each epoch has fewer samples than the data; empty where it has not.
        left_out: how many fewer.
        by_sample: whether each sample is drawn under a seed of its own, so that workers make the same ones.
    """
    seed: dict[str, Any] = {"seed": {"seed": _SEED if by_sample else None, "shift": shift}}
    if shorter:
        seed["shorter"] = {"samples": left_out, "datasets": shorter == "datasets"}
    if not kind:
        return {**seed, "account": {}}
    return {
        **seed,
        "clock": {"kind": kind, "warmup": 0, "steps": steps, "seconds": None},
        "observe": {"whole": True},
        "account": {},
    }


def reseeded(shift: int | None) -> dict[str, Any]:
    """The plan of a run that nothing watches, under other seeds where a shift is given."""
    return {} if shift is None else {"seed": {"shift": shift}}


def other_seeds() -> int:
    """A change of seeds that no program can know."""
    return random.SystemRandom().randrange(1, 2**31)


def samples_to_leave_out(run: WholeRun) -> int:
    """Of each epoch, as many as no program can know: a last batch that is neither full nor of one sample, then.

    A batch that lacks one is what many ways to divide the data agree in.
    """
    sizes = Counter(size for size, _ in (run.account or {}).get("batches", ()))
    usual = max(sizes, key=lambda size: sizes[size], default=1)
    return random.SystemRandom().randrange(2, usual - 1) if usual >= _LARGE_BATCH else 1


def other_kind(run: WholeRun) -> str:
    """What counts as a step in a program whose run made none of an optimizer; nothing where nothing is seen of it."""
    account = run.account or {}
    return "forward" if account.get("calls") else "batch" if account.get("batches") else ""


def begin_alike(a: WholeRun, b: WholeRun) -> bool:
    """Whether the first steps of two runs computed the same, bit for bit, as far as the data had not yet ended."""
    first = ([tensor for tensor in run.tensors if tensor.step == 0] for run in (a, b))
    return all(x.equals(y) for x, y in zip(*first))


def agree(a: WholeRun, b: WholeRun) -> bool:
    """Whether two runs computed the same, bit for bit."""
    return len(a.tensors) == len(b.tensors) and all(x.equals(y) for x, y in zip(a.tensors, b.tensors))

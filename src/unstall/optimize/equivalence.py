"""Run the first steps of the original and of changed programs under one seed, and judge how the same they are.

The original runs twice: a program that does not even agree with itself is judged by what its runs differ by, too. Where
a change is not bit for bit the same, the original runs some times more, perturbed by one unit in the last place: see
:mod:`unstall.optimize.sameness`. What rounding tips over in a later step it does not under all seeds: a change that is
close under another one is.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import IO, Any

from unstall.benchmark.rundir import ERRORS_NAME
from unstall.child.trial import COMPLAINTS_NAME
from unstall.optimize import thresholds
from unstall.optimize.comparison import TimedWindow, TrialFailed, last_line
from unstall.optimize.proposal import Attempt
from unstall.optimize.sameness import Limits, ObservedTensor, Verdict
from unstall.optimize.trial_runner import TrialRunner, Variant
from unstall.records.vocabulary import OPTIMIZER, TRAINING

_SEED = 20260101
_NO_RECORD = (
    EOFError, OSError, pickle.UnpicklingError, ValueError, LookupError, AttributeError, TypeError, OverflowError,
    MemoryError, RecursionError,
)  # fmt: skip
"""What pickle raises at the end of a file, and where it is truncated or damaged."""
_LONGEST_LINE = 200


class Unobservable(Exception):
    """A run gave nothing to compare; the message says why."""


class NothingSeen(Unobservable):
    """Nothing was computed in these steps that could be compared."""


def observe(
    runner: TrialRunner,
    variant: Variant,
    kind: str,
    steps: int,
    *,
    check: Mapping[str, Any] | None = None,
    perturbed: int | None = None,
    shift: int = 0,
    ordinarily: bool = False,
) -> list[ObservedTensor]:
    """Run the first steps of a variant and read what they computed. Raises Unobservable.

    ``check``: for the child's part of that name, which proves that what the variant keeps or remembers may be kept.
    ``perturbed``: the seed by which weights and inputs are off by one unit in the last place; None for as they are.
    ``shift``: all seeds are others, by this, those too that the program sets itself.
    ``ordinarily``: not as a fork.
    """
    seeds = {"seed": _SEED ^ shift, "shift": shift}
    plan = {**TimedWindow(kind, 0, steps).plan(), "seed": seeds, "observe": {}, "check": check}
    if perturbed is not None:
        plan["perturb"] = {"seed": perturbed}
    run = runner.run(variant, plan, timeout=thresholds.COMPARED_S, ordinarily=ordinarily)
    failures = failures_in(run.folder)
    if failures:
        raise Unobservable(f"unstall itself failed in it: {failures[0]}")
    mismatch = run.folder / "mismatch.txt"
    if mismatch.exists():
        raise Unobservable(mismatch.read_text().strip())
    if run.json("clock.json") is None:
        reason = f"no end after {run.seconds:.0f} s" if run.timed_out else f"exit code {run.status}"
        raise Unobservable(f"{reason}{last_line(run.output)}")
    tensors = list(read(run.folder / "observed.bin"))
    if not tensors:
        raise NothingSeen("neither a loss nor an output of a model was seen")
    return tensors


def failures_in(folder: Path) -> list[str]:
    """What the child side could not do in a run, a line each: what it should have changed or seen there it has not."""
    lines: list[str] = []
    for name in (ERRORS_NAME, COMPLAINTS_NAME):
        with suppress(OSError):
            lines += (folder / name).read_text(errors="replace").splitlines()
    return [line[:_LONGEST_LINE] for line in dict.fromkeys(lines) if line.strip()]


class _Records(pickle.Unpickler):
    """Reads plain values only: a changed program could have written anything into the file."""

    def find_class(self, module: str, name: str) -> Any:
        """No value that is written there needs a class."""
        raise pickle.UnpicklingError(f"{module}.{name}")


def read(path: Path) -> Iterator[ObservedTensor]:
    """What the child side wrote of a run, in a folder of unstall's own, up to what it cannot have written."""
    try:
        file = path.open("rb")
    except OSError:
        return
    with file:
        while (record := _next_record(file)) is not None:
            yield ObservedTensor(*record)


def _next_record(file: IO[bytes]) -> tuple[Any, ...] | None:
    """The next record of a file; None at its end, and at what the child side cannot have written."""
    try:
        record = _Records(file).load()
    except _NO_RECORD:
        return None
    is_complete = isinstance(record, tuple) and len(record) == len(fields(ObservedTensor))
    return record if is_complete else None


class Reference:
    """What changed programs are compared with; :meth:`observe` runs it, then :meth:`judge` compares."""

    def __init__(
        self, observe: Callable[..., list[ObservedTensor]], distrust_forks: Callable[[], bool] = lambda: False
    ):
        """``distrust_forks``: start no program as a fork any more; whether any was."""
        self.observe_variant, self.distrust_forks = observe, distrust_forks
        self.kind = ""
        self.variant = Variant()
        """The original; once a change is kept that is more than rounding, the program with it."""
        self.steps = thresholds.COMPARED_STEPS
        self.runs: list[Sequence[ObservedTensor]] = []
        """Runs of the original as it is: two."""
        self.plays_first = False
        """Whether neither a loss nor an output comes in the first steps of another kind than the optimizer's."""
        self.limits: dict[int, Limits] = {}
        """By what the seeds are shifted; made when first needed: it takes some runs."""

    def observe(self, kind: str, *, steps: int = thresholds.COMPARED_STEPS, trains: bool = False) -> None:
        """Run the original twice: what it computes, and whether it agrees with itself. Raises TrialFailed.

        ``trains``: it has an optimizer. Where the first steps of another kind show no loss, as it plays for a while
        before it learns, the optimizer's are compared. The first run is a process of its own and the second a fork,
        where programs are forked: only if both compute the same, other runs are forks, too.
        """
        self.kind, self.steps = kind, max(steps, thresholds.COMPARED_STEPS)
        try:
            self.runs = [self._first_run(trains=trains)]
            self.runs.append(self._second_run())
        except Unobservable as error:
            raise TrialFailed(f"what the program computes could not be observed: {error}") from error

    def _second_run(self) -> Sequence[ObservedTensor]:
        try:
            run = self.observe_variant(self.variant, self.kind, self.steps)
        except Unobservable:
            if not self.distrust_forks():
                raise
        else:
            if _agree(self.runs[0], run) or not self.distrust_forks():
                return run
        return self._ordinary_run(self.kind)

    def _ordinary_run(self, kind: str) -> Sequence[ObservedTensor]:
        return self.observe_variant(self.variant, kind, self.steps, ordinarily=True)

    def _first_run(self, *, trains: bool) -> Sequence[ObservedTensor]:
        if not trains or self.kind in TRAINING:
            return self._ordinary_run(self.kind)
        seen: Sequence[ObservedTensor] = ()
        with suppress(NothingSeen):
            seen = self._ordinary_run(self.kind)
        if any(tensor.what.startswith("loss") for tensor in seen):
            return seen
        self.plays_first = not seen
        try:
            run = self._ordinary_run(OPTIMIZER.name)
        except Unobservable:  # its first step of the optimizer takes too long to come
            if not seen:
                raise
            return seen
        self.kind = OPTIMIZER.name
        return run

    @property
    def is_reproducible(self) -> bool:
        """Whether the two runs of the original agree bit for bit."""
        return _agree(*self.runs)

    def move_to(self, variant: Variant, observed: Sequence[ObservedTensor]) -> None:
        """Compare with this variant from now on: a person allowed it to compute something else."""
        self.variant, self.runs, self.limits = variant, [observed], {}

    def judge(self, changed: Variant, attempts: Sequence[Attempt]) -> Verdict:
        """How the same a variant is as the original; exact where its last change alone is so.

        ``attempts``: all changes that are in it, those that are kept first.
        """
        check = _check(attempts)
        try:
            tensors = self.observe_variant(changed, self.kind, self.steps, check=check)
        except Unobservable as error:
            return Verdict(None, reason=f"what it computes could not be compared: {error}")
        attempts[-1].observed = tensors
        before = attempts[-2].observed if len(attempts) > 1 else self.runs[0]
        if _agree(before, tensors):
            return Verdict("exact")
        verdict = self._limits(0).judge(tensors)
        if verdict.is_late and attempts[-1].remedy.rounds_otherwise:
            return self._under_other_seeds(changed, check) or verdict
        return verdict

    def _under_other_seeds(self, changed: Variant, check: Mapping[str, Any] | None) -> Verdict | None:
        """That it is close, where it is under one of them; None where it is under none, or that cannot be said."""
        for shift in thresholds.OTHER_SEEDS:
            with suppress(Unobservable):
                limits = self._limits(shift)
                tensors = self.observe_variant(changed, self.kind, self.steps, check=check, shift=shift)
                verdict = limits.judge(tensors)
                if verdict.sameness in ("exact", "close"):
                    return replace(verdict, sameness="close")
        return None

    def _limits(self, shift: int) -> Limits:
        """What rounding may change where all seeds are shifted by this. Raises Unobservable."""
        if shift not in self.limits:
            runs = self.runs if not shift else [self.observe_variant(self.variant, self.kind, self.steps, shift=shift)]
            self.limits[shift] = Limits(runs[0], [*runs[1:], *self._perturbed(shift)])
        return self.limits[shift]

    def _perturbed(self, shift: int) -> Iterator[list[ObservedTensor]]:
        """Runs of the original that are off by one unit in the last place; those that fail tell nothing."""
        for seed in range(thresholds.PERTURBED_RUNS):
            with suppress(Unobservable):
                yield self.observe_variant(self.variant, self.kind, self.steps, perturbed=seed, shift=shift)


def _agree(a: Sequence[ObservedTensor], b: Sequence[ObservedTensor]) -> bool:
    """Whether two runs computed the same, bit for bit."""
    return len(a) == len(b) and all(map(ObservedTensor.equals, a, b))


def _check(attempts: Sequence[Attempt]) -> dict[str, Any] | None:
    """What the child's part ``check`` is to prove of these changes; None where they keep and batch nothing."""
    proposals = [attempt.proposal for attempt in attempts]
    memoized = [function for proposal in proposals for function in proposal.memoized_functions]
    if memoized or any(
        proposal.needs_revisits or proposal.keeps_files or proposal.batches_model_calls or proposal.indexes_batches
        for proposal in proposals
    ):
        return {"memoized": memoized, "size": float(thresholds.SIZE)}
    return None

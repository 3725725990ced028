"""Follow the changed program line by line, under its own seeds and others: what of the change is reached, and when.

No result is compared here: what was proven so far is doubted where the change has a way for the program's own seeds
alone, where its work grows from step to step, or where it may end the training by a condition that no run met.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unstall.prove import thresholds
from unstall.prove.conditions import raised
from unstall.prove.lines import (
    arguments,
    calls,
    early_ends,
    hidden_errors,
    kept,
    open_files,
    options,
    reached,
    results,
    volume,
)
from unstall.prove.lines.sources import Change
from unstall.prove.runner import WholeRun
from unstall.prove.runs import ProofEnded, Runs, other_seeds, reseeded
from unstall.records.proof import Difference

_USUAL_RUNS = 2  # of the changed program: under its own seeds, and under others; more where these leave a doubt


def seconds_taken(changed_s: float) -> float:
    """How long it takes as a rule. ``changed_s``: a run of the changed program."""
    return _USUAL_RUNS * changed_s


@dataclass(frozen=True)
class Follower:
    """Of one proof."""

    runs: Runs
    change: Change
    status: int
    """The exit code with which the changed program ends usually."""
    has_seeds: bool
    """Whether the program's random numbers can be made others from outside."""
    steps: int
    """That the optimizers make in a run."""
    training_calls: int
    """Of models, in a run."""

    def unreached(self) -> list[str]:
        """Changed lines that no run reached. Raises ProofEnded where there is doubt."""
        unreached = [*reached.compiled(self.change.sides)]
        if not self.change.lines:
            return unreached
        own = self._follow(None)
        others = list(self._under_others(own))
        place = reached.only_here(own.reached, [other.reached for other in others])
        if place is not None:
            raise ProofEnded("inconclusive", reached.in_words(place, len(others)))
        if others:
            self._refuse_more_and_more([own, *others])
        self._refuse_results_known(own, others)
        places = own.reached.union(*(other.reached for other in others))
        self._refuse_what_never_came(places, own)
        self._refuse_errors_untold(own)
        self._refuse_other_results()
        return [*unreached, *reached.never(self.change, places)]

    def _refuse_more_and_more(self, runs: Sequence[WholeRun]) -> None:
        """Raise ProofEnded where a function is called more and more often, or an operator takes more and more.

        Where nothing does in the original. A function as often in all of these runs: what follows from the data,
        detections of a model that learns, is other numbers. What an operator takes depends on the samples drawn.
        """
        called = set.intersection(*(set(calls.rising(run.quarters)) for run in runs))
        taken = set.intersection(*({place for place, _ in calls.rising(run.volume)} for run in runs))
        kept = set.intersection(*(set(volume.accumulating(run.validations)) for run in runs))
        if not (called or taken or kept):
            return
        original = self.runs.original(self._plan({}))
        if kept and not volume.accumulating(original.validations):
            place = min(kept)
            raise ProofEnded("inconclusive", volume.accumulating_in_words(place, runs[0].validations[place]))
        if calls.rising(original.quarters):
            return
        if called:
            raise ProofEnded("inconclusive", calls.rising_in_words(*min(called)))
        if taken and not calls.rising(original.volume):
            place = min(taken)
            raise ProofEnded("inconclusive", volume.rising_in_words(place, runs[0].volume[place]))

    def _refuse_results_known(self, own: WholeRun, others: Sequence[WholeRun]) -> None:
        """Raise ProofEnded where functions run another number of times under the program's own seeds alone."""
        suspects = calls.seed_dependent(own.calls, [other.calls for other in others])
        if not suspects:
            return
        plans = [{"reached": {"files": {}}, **reseeded(shift)} for shift in (None, other_seeds())]
        dependence = calls.not_the_originals(suspects, *(self.runs.original(plan).calls for plan in plans))
        if dependence is not None:
            raise ProofEnded("inconclusive", calls.in_words(dependence, len(others)))

    def _refuse_what_never_came(self, places: frozenset[reached.Place], own: WholeRun) -> None:
        """Raise ProofEnded where the change itself shows what it would do where no run came: hide an error, say."""
        lines_reached = frozenset((place.path, place.line) for place in places if place.offset >= 0)
        always = self.steps == self.training_calls
        early = early_ends.first(self.change, lines_reached, own.loop_lines, steps_always=always)
        hidden = hidden_errors.first(self.change, lines_reached)
        read = (look.first(self.change) for look in (arguments, options, kept, open_files))
        for reason in (early, hidden, *read):
            if reason is not None:
                raise ProofEnded("inconclusive", reason)

    def _refuse_errors_untold(self, own: WholeRun) -> None:
        """Raise ProofEnded where an error in a function ends the original, and not the changed program."""
        for one in raised.failing(self.change, own.calls):
            original = None if one.is_new else self.runs.may_fail(self.change.sides.original, one.plan)
            if original and (original.timed_out or not (original.raised and original.effects.status)):
                continue
            untold = raised.untold(self.runs.may_fail(self.change.sides.changed, one.plan))
            if untold and original is None:
                raise ProofEnded("inconclusive", f"{untold}{one.where}: the error is told to nobody")
            if untold and original:
                ended = Difference(kind="effects", place="end of the run", detail=untold)
                raise ProofEnded("different", f"it does not do the same{one.where}: {ended}", first_difference=ended)

    def _refuse_other_results(self) -> None:
        """Raise ProofEnded where a function keeps its name, arguments and words, and gives something else."""
        plan = results.plan_of(self.change)
        if not plan:
            return
        own, others = (self.runs.original({**plan, **reseeded(shift)}).results for shift in (None, other_seeds()))
        changed = self.runs.run(self.change.sides.changed, plan, self.runs.remaining()).results
        other = results.first_other(own, others, changed)
        if other is not None:
            raise ProofEnded("inconclusive", other)

    def _under_others(self, own: WholeRun) -> Iterator[WholeRun]:
        """Runs under other seeds: more and more of them, as long as the program's own are told from all."""
        others: list[WholeRun] = []
        while self.has_seeds and len(others) < thresholds.MOST_OTHER_SEEDS:
            others.append(self._follow(other_seeds()))
            yield others[-1]
            is_distinct = reached.only_here(own.reached, [other.reached for other in others]) is not None
            if not (is_distinct or calls.seed_dependent(own.calls, [other.calls for other in others])):
                return

    def _plan(self, lines: Mapping[str, Sequence[int]]) -> dict[str, Any]:
        """Of a run in which these lines of files are followed, and calls and operators are counted."""
        return {"reached": {"files": lines}, "volume": {"steps": self.steps}}

    def _follow(self, shift: int | None) -> WholeRun:
        """A run of the changed program whose changed lines are followed."""
        plan = {**self._plan(self.change.lines), **reseeded(shift)}
        run = self.runs.run(self.change.sides.changed, plan, self.runs.remaining())
        if run.effects.status != self.status:
            status = f"exit code {run.effects.status} where its lines are followed, not {self.status}"
            raise ProofEnded("inconclusive", f"it ends with {status}")
        if reached.LOST in run.reached:
            raise ProofEnded("inconclusive", "the program ends what follows its lines: a debugger of its own does")
        return run

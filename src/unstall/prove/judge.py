"""The proof: refuse, look at the first steps, run whole, watched and not, in turns, and end with one of five words.

What is plainly different is said as soon as it is seen. A program is watched (its numbers are written down) under its
own seeds and under others; it is timed where nothing watches, and those runs must leave the same behind. Every second
pair of these has other seeds too: a result that the change knows beforehand fits none of them. What is proven by then
is let fail in several ways, and followed line by line once more, under seeds of both kinds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from unstall.optimize import thresholds as rounding
from unstall.prove import (
    accounts,
    following,
    last_checks,
    machine_differences,
    passing_files,
    refusals,
    reproducible,
    save_differences,
    scratch,
    thresholds,
)
from unstall.prove.comparing import Comparer
from unstall.prove.fewer_samples import FewerSamples, shortened
from unstall.prove.findings import Findings
from unstall.prove.growth import growing
from unstall.prove.lines.sources import Change
from unstall.prove.runner import WholeRun
from unstall.prove.runs import (
    ProofEnded,
    Runs,
    SideRunner,
    agree,
    begin_alike,
    other_kind,
    other_seeds,
    plan_of,
)
from unstall.prove.timing import ProofPair, break_even, doubt, gains_less_watched, medians, own_pairs, ratio_of
from unstall.prove.trees import Sides
from unstall.records.proof import Proof, ProofRatio

_PAIRS_WATCHED_LATER = 2  # as they are, and under other seeds
_NOTHING_SEEN = "neither losses nor outputs of models were seen: what it leaves behind is compared alone"
_FIXED_SEEDS = "the program's seeds cannot be changed from outside: it was compared under its own alone"
_DRAWS_OTHERWISE = "random numbers are drawn as the program draws them: not sample by sample, as one side does not"
_FAILS_UNDER_OTHERS = "under other seeds the original fails: it was compared under its own alone"


@dataclass(frozen=True)
class ProofOptions:
    """What the person asked for."""

    budget_s: float = 900.0
    allow: frozenset[str] = frozenset()
    """What may differ: ``reduced``, the values; ``training-changing``, the number of steps and samples too."""


@dataclass
class Judge:
    """One proof."""

    runner: SideRunner
    sides: Sides
    options: ProofOptions
    log: Callable[[str], None] = lambda line: None
    clock: Callable[[], float] = time.monotonic
    by_sample: bool = True
    """Whether each sample is drawn under a seed of its own: a change may draw those of a batch at once."""
    has_seeds: bool = True
    """Whether the program's random numbers can be made others from outside."""
    pairs: list[ProofPair] = field(default_factory=list)
    """Whole runs that nothing watches."""
    watched: list[ProofPair] = field(default_factory=list)
    kind: str = ""
    """What a step of this program is."""
    unreached: list[str] = field(default_factory=list)
    """Changed lines that no run reached."""
    findings: Findings = field(default_factory=Findings)
    change: Change = field(init=False)
    runs: Runs = field(init=False)
    comparer: Comparer = field(init=False)

    def __post_init__(self) -> None:
        self.change = Change.of(self.sides)
        self.runs = Runs(self.runner, self.sides, self.options.budget_s, self.clock)
        self.comparer = Comparer(self.runs, self.options.allow, self.log, self.findings)

    def prove(self) -> Proof:
        """Judge the change, within the budget since this was made."""
        try:
            self._refuse()
            self.kind = self._look()
            self._watch(self.kind)
            self._time()
            ended = self._conclude()
            if ended.verdict == "proven":
                self._check_last()
        except ProofEnded as early:
            ended = early
        return self._proof(ended)

    # ------------------------------------------------------------------ the parts of a proof

    def _refuse(self) -> None:
        if not any(True for _ in self.sides.differing):
            raise ProofEnded("refused", "there is nothing to judge: both sides are the same")
        touched = refusals.first(self.sides)
        if touched is not None:
            raise ProofEnded("refused", f"it changes what is measured: {touched}", first_difference=touched)

    def _look(self) -> str:
        """Compare the first steps, and find out what a step of this program is."""
        self.log("the first steps of both")
        plan = plan_of("optimizer", steps=int(thresholds.LOOK_STEPS))
        original = self.runs.original(plan)
        if original.clock is None:
            kind = other_kind(original)
            if not kind:
                return ""
            plan = plan_of(kind, steps=int(thresholds.LOOK_STEPS))
            original = self.runs.original(plan)
        kind = str(plan["clock"]["kind"])
        try:
            self.comparer.compare(plan, original, self.runs.changed(plan, original.seconds), is_whole=False)
        except ProofEnded as ended:
            difference = ended.facts.get("first_difference")
            if difference is None or difference.kind != "values" or not self._look_as_it_draws(kind):
                raise
        return kind

    def _look_as_it_draws(self, kind: str) -> bool:
        """Whether both do the same where random numbers are drawn as the program draws them; they are from then on.

        A change that draws for a whole batch what was drawn for each sample does the same, but not where each sample
        has a seed. A program that sets no seeds is another one each time: False.
        """
        plan = plan_of(kind, steps=int(thresholds.LOOK_STEPS), by_sample=False)
        original = self.runs.original(plan)
        if not agree(original, self.runs.original(plan)):
            return False
        self.comparer.compare(plan, original, self.runs.changed(plan, original.seconds), is_whole=False)
        self.by_sample = False
        self.findings.add(_DRAWS_OTHERWISE)
        return True

    def _watch(self, kind: str) -> None:
        """Compare whole runs, under the program's seeds and under others."""
        self.log("whole runs of both, watched")
        plan = plan_of(kind, by_sample=self.by_sample)
        original = self.runs.original(plan)
        changed = self.runs.changed(plan, original.seconds)
        self.watched.append(ProofPair(original, changed))
        if original.account and changed.account and accounts.takes_precedence(original.account, changed.account):
            raise ProofEnded("refused", "it changes what is measured: the system prefers it to other programs")
        self.comparer.compare(plan, original, changed, is_whole=True)
        self.findings.add(self._words_of_tensors(original) if original.tensors else _NOTHING_SEEN)
        self.runs.need(self._seconds_left(original, changed))
        if not original.tensors:
            if not any(content.size for content in original.effects.contents.values()):
                raise ProofEnded(
                    "inconclusive", "the program computes, prints and writes nothing that could be compared"
                )
            return
        self._watch_as_it_is(kind)
        self._watch_under_other_seeds(kind, original)

    def _seconds_left(self, original: WholeRun, changed: WholeRun) -> float:
        """About how long the rest of a proof takes that comes to its end, by the first whole run of each side."""
        faster_s = min(original.seconds, changed.seconds)  # one that is slower comes to none of the last checks
        pairs = thresholds.LEAST_PAIRS + _PAIRS_WATCHED_LATER
        for_rounding = 1 + rounding.PERTURBED_RUNS if self.findings.sameness == "close" else 0
        return (
            original.seconds * (2 * pairs + for_rounding)
            + last_checks.seconds_taken(original, faster_s)
            + following.seconds_taken(faster_s)
        )

    def _watch_as_it_is(self, kind: str) -> None:
        """Compare whole runs of the program with its seeds untouched.

        What a change does under the program's own seeds alone shows here, which are others where numbers are compared.
        """
        self.log("whole runs of both, as they are")
        plan = {key: value for key, value in plan_of(kind).items() if key != "seed"}
        original = self.runs.original(plan)
        changed = self.runs.changed(plan, original.seconds)
        self.watched.append(ProofPair(original, changed))
        self.comparer.compare_as_it_is(plan, original, changed)

    def _watch_under_other_seeds(self, kind: str, original: WholeRun) -> None:
        """Compare whole runs under seeds that the change has not seen, and with fewer samples in each epoch.

        ``original``: a run under the usual seeds.
        """
        self.log("the same under seeds that the change has not seen, with fewer samples")
        shift = other_seeds()
        runs = FewerSamples(self.runs, kind, shift, self.by_sample, self.findings).watched(original)
        if runs is None:
            self.has_seeds = False
            self.findings.add(_FAILS_UNDER_OTHERS)
            return
        plan, other, changed = runs
        is_shorter = bool(shortened(other))
        self.has_seeds = not begin_alike(original, other)
        if not (self.has_seeds or is_shorter):
            self.findings.add(_FIXED_SEEDS)
            return
        self.watched.append(ProofPair(other, changed))
        conditions = ["under other seeds"] * self.has_seeds + ["with fewer samples in each epoch"] * is_shorter
        self.comparer.compare(plan, other, changed, is_whole=True, where=f" {' and '.join(conditions)}")
        self.findings.add(
            f"under the program's seeds, and under those seeds changed by {shift}" if self.has_seeds else _FIXED_SEEDS
        )
        if is_shorter:
            self.findings.add(
                f"with the data as they are, and with {plan['shorter']['samples']} fewer samples in each epoch"
            )

    def _time(self) -> None:
        """Time whole runs that nothing watches, in turns, until it is clear; compare what each leaves behind.

        In turns A B, B A; under the program's own seeds and under others.
        """
        while len(self.pairs) < thresholds.MOST_PAIRS:
            number = len(self.pairs)
            longest = max((pair.original.seconds + pair.changed.seconds for pair in self.pairs), default=0.0)
            if number >= thresholds.LEAST_PAIRS and longest > self.runs.remaining():
                return
            shift = other_seeds() if self.has_seeds and number % 2 else None
            self.log(f"pair {number + 1} of whole runs{', under other seeds' * (shift is not None)}")
            self.pairs.append(self.runs.timed(shift, changed_first=number % 4 in (1, 2), keeps_files=number < 2))
            self.comparer.compare_effects(self.pairs)
            fewer = save_differences.fewer(self.pairs)
            if fewer is not None and not fewer.is_by_time:
                self.comparer.judge(fewer.difference)
            ratio = ratio_of(self.pairs)
            if ratio is not None and ratio.high < thresholds.LEAST_GAIN:
                return
            in_doubt = number < thresholds.MOST_PAIRS_IN_DOUBT and doubt(self.pairs, self.watched) is not None
            if ratio is not None and ratio.low > thresholds.LEAST_GAIN and not in_doubt:
                return
            if in_doubt and gains_less_watched(self.pairs, self.watched):
                self._watch_again(changed_first=number % 4 in (1, 2))

    def _watch_again(self, *, changed_first: bool) -> None:
        """One more watched pair: the time of a few tells little where others use the machine."""
        self.log("whole runs of both once more, watched")
        plan = plan_of(self.kind, by_sample=self.by_sample)
        longest = max(run.seconds for pair in self.watched for run in (pair.original, pair.changed))
        changed = self.runs.changed(plan, longest) if changed_first else None
        original = self.runs.original(plan)
        pair = ProofPair(original, changed or self.runs.changed(plan, original.seconds))
        self.watched.append(pair)
        self.comparer.compare(plan, original, pair.changed, is_whole=True)

    def _conclude(self) -> ProofEnded:
        self.comparer.note_errors(self.pairs)
        ratio = ratio_of(self.pairs)
        if ratio is None or ratio.low <= thresholds.LEAST_GAIN <= ratio.high:
            count = len(self.pairs)
            more_s = sum(pair.original.seconds + pair.changed.seconds for pair in self.pairs)  # as many pairs again
            return ProofEnded("inconclusive", f"{count} pairs of runs do not show whether it is faster", more_s=more_s)
        if ratio.high < thresholds.LEAST_GAIN:
            return ProofEnded("not-faster", f"whole runs are {ratio.value:.2f} times as fast")
        reason = doubt(self.pairs, self.watched)
        if reason is not None:
            return ProofEnded("inconclusive", reason)
        for missed in (save_differences.fewer(self.pairs), save_differences.delayed(self.watched)):
            if missed is not None and missed.is_by_time:
                reason = f"{missed.difference}, which may be for the time that it takes: a longer run would tell"
                return ProofEnded("inconclusive", reason)
            self.comparer.judge(missed.difference if missed is not None else None)
        self.comparer.judge(save_differences.resized(self.watched))
        reason = growing(self.watched) or self._beside_the_results()
        if reason is not None:
            return ProofEnded("inconclusive", reason)
        return ProofEnded("proven", f"whole runs are {ratio.value:.2f} times as fast, and the results the same")

    def _beside_the_results(self) -> str | None:
        """What the changed program does to the machine in all runs of a kind, and the original does in none."""
        if self.pairs and all(_outlives(pair.changed) and not _outlives(pair.original) for pair in self.pairs):
            longest = max(pair.changed.outlived_s for pair in self.pairs)
            return f"a process of it goes on for {longest:.1f} s after its end, and the original's do not"
        both = [*self.pairs, *self.watched]
        reason = (
            scratch.shared_by_runs(both, self.sides)
            or passing_files.missing(both)
            or reproducible.lost(self.pairs)
            or machine_differences.more_of_it(self.pairs)
        )
        if reason is not None:
            return reason
        reasons = [_done_to_the_machine(pair.original, pair.changed) for pair in self.watched]
        return f"{reasons[0]}, which the original does not" if reasons and all(reasons) else None

    def _check_last(self) -> None:
        """Look at what is proven so far where things go otherwise, and line by line. Raises ProofEnded."""
        last_checks.LastChecks(
            self.runs, self.change, self.comparer, self.findings, self.pairs, self.watched, self.log
        ).make(self._plan_of_a_step())
        self.log("which lines of the change are reached")
        usual = self.pairs[0].changed.effects.status
        account = (self.watched[0].changed.account if self.watched else None) or {"steps": 0, "calls": ()}
        counts = int(account["steps"]), accounts.calls_of(account, "train")
        self.unreached = following.Follower(self.runs, self.change, usual, self.has_seeds, *counts).unreached()

    def _plan_of_a_step(self) -> Mapping[str, Any] | None:
        """To watch the first step; None of a program that makes none."""
        if not self.kind:
            return None
        plan = plan_of(self.kind, steps=1, by_sample=self.by_sample)
        return {**plan, "observe": {**plan["observe"], "gradients": True}}

    # ------------------------------------------------------------------ the answer

    def _words_of_tensors(self, original: WholeRun) -> str:
        exactness = {"exact": "bit for bit", "close": "but for rounding", "reduced": "not compared, as allowed"}
        counted = f" ({words})" if original.account and (words := accounts.in_words(original.account)) else ""
        return (
            f"inputs, outputs, losses, weights and optimizer state of whole runs, "
            f"{exactness[self.findings.sameness]}{counted}"
        )

    def _proof(self, ended: ProofEnded) -> Proof:
        ratio = ratio_of(self.pairs)
        is_same = ended.verdict in ("proven", "not-faster") or (ended.verdict == "inconclusive" and bool(self.watched))
        known_by = list(self.findings.known_by)
        if self.pairs:
            reseeded = len(self.pairs) - len(own_pairs(self.pairs))
            known_by.append(
                f"exit code, standard output and {self._files()} of {len(self.pairs)} pairs of whole runs that nothing "
                f"watches, timed from outside{f', {reseeded} of them under other seeds' * bool(reseeded)}"
            )
        return Proof(
            verdict=ended.verdict,
            reason=ended.reason,
            changes=self.sides.label,
            sameness=self.findings.sameness if is_same else None,
            ratio=ProofRatio(value=ratio.value, low=ratio.low, high=ratio.high)
            if ratio and math.isfinite(ratio.high)
            else None,
            known_by=known_by,
            seconds=medians(self.pairs, lambda run: run.seconds),
            memory_bytes=medians(self.pairs, lambda run: run.memory_bytes),
            cpu_s=medians(self.pairs, lambda run: run.cpu_s),
            break_even_steps=break_even(self.watched) if self.pairs else None,
            unreached=self.unreached,
            pairs=len(self.pairs),
            **ended.facts,
        )

    def _files(self) -> str:
        count = len(self.pairs[0].original.effects.contents) - 1
        return "one file" if count == 1 else f"{count} files"


def _outlives(run: WholeRun) -> bool:
    return run.outlived_s > thresholds.OUTLIVES_S


def _done_to_the_machine(original: WholeRun, changed: WholeRun) -> str | None:
    if changed.refused and not original.refused:
        return f"it tries what the sandbox refuses ({changed.refused[0]})"
    if original.account and changed.account:
        return accounts.behaves_otherwise(original.account, changed.account)
    return None

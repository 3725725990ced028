"""One trial of a change by itself: what becomes of the attempt."""

from __future__ import annotations

import pytest
from optimize_builders import make_diagnosis, make_run

from unstall.optimize.budget import SearchBudget
from unstall.optimize.comparison import PairedRuns, TimedRun, TrialFailed
from unstall.optimize.equivalence import Reference
from unstall.optimize.proposal import Attempt, Proposal
from unstall.optimize.remedies import all_remedies
from unstall.optimize.result import Result, SearchOptions
from unstall.optimize.trial import ChangeTrials
from unstall.records.remedies import RemedyStatus


def make_pairs(*speedups):
    run = make_run()
    return PairedRuns([(TimedRun(10, 10, speedup, run), TimedRun(10, 10, 1.0, run)) for speedup in speedups])


def tried(compare, **options):
    """The attempt after a trial, and the variant that is kept, if it is."""
    trials = ChangeTrials(
        compare=compare, reference=Reference(lambda *given, **named: []), budget=SearchBudget(900.0, lambda: 0.0),
        options=SearchOptions(**options), log=lambda line: None,
    )  # fmt: skip
    attempt = Attempt(all_remedies()["threads"], Proposal("2 threads", 1.5, ""))
    state = make_diagnosis()
    return attempt, trials.run(attempt, Result(state, state))


def test_a_trial_that_fails_is_the_end_of_it():
    def compare(*given, **options):
        raise TrialFailed("exit code 1")

    attempt, kept = tried(compare)
    assert (attempt.status, attempt.reason, kept) == (RemedyStatus.FAILED, "exit code 1", None)
    assert not attempt.is_in_doubt


@pytest.mark.parametrize(("worth", "in_doubt"), [(0.05, True), (0.5, False)])
def test_what_more_pairs_could_decide_is_in_doubt_if_it_is_worth_it(worth, in_doubt):
    attempt, kept = tried(lambda *given, **options: make_pairs(1.5, 1.1), worth=worth)
    assert (attempt.status, attempt.is_in_doubt, kept) == (RemedyStatus.INCONCLUSIVE, in_doubt, None)
    assert attempt.promise == pytest.approx((1.5 * 1.1) ** 0.5)


def test_what_is_no_faster_is_in_no_doubt():
    attempt, kept = tried(lambda *given, **options: make_pairs(1.0, 1.0))
    assert (attempt.status, attempt.is_in_doubt, kept) == (RemedyStatus.SLOWER, False, None)

"""When to stop optimising: what is left, what the last changes brought, and what the next one may be worth.

Three questions. What is left: Amdahl's bound, the speed-up if everything that holds the step up were free, is
1/(1 - gap). What the effort brings: each state of the code in the history is an iteration, its gain the ratio to the
best before it; gains usually shrink from one to the next, and the same shrinking is assumed of the coming one. What it
is worth: hours a week that the program runs, times the share of them that the best known remedy would save.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from itertools import pairwise

from unstall.records.comparison import Answer, BestRemedy, Entry, Iteration, Savings, Stopping
from unstall.records.report import Report, costliest
from unstall.records.vocabulary import HEALTHY, WITHOUT_CULPRIT
from unstall.repeat.ledger import gap_of
from unstall.repeat.thresholds import CLOSE_ENOUGH, LITTLE, LOOK_BACK_WEEKS

_WEEK = timedelta(days=7)
_LOOK_BACK = LOOK_BACK_WEEKS * _WEEK


def judge(
    entries: Sequence[Entry],
    report: Report,
    *,
    noise: float = 0.0,
    price: float | None = None,
    hours_per_week: float | None = None,
    now: datetime | None = None,
) -> Stopping:
    """Whether to go on.

    Args:
        entries: the program's runs from the ledger, oldest first.
        report: its latest report.
        noise: standard deviation of log steps/s from run to run; smaller gains are none.
        price: of an hour of the machine.
        hours_per_week: that the program runs; as the ledger has it if not given.
        now: the time, for the ledger's hours.
    """
    gap = gap_of(report)
    bound = 1 / max(1 - gap, 1e-3) if gap is not None else None
    on_host = [entry for entry in entries if entry.host == entries[-1].host]
    history = iterations(on_host)
    expected = expected_gain(history, bound)
    best = best_remedy(report)
    savings = None
    hours = weekly_hours(entries, now or datetime.now(timezone.utc)) if hours_per_week is None else hours_per_week
    if bound is not None and hours > 0:
        saved = hours * (1 - 1 / best.gain) if best is not None else 0.0
        worth = saved * price if price is not None else None
        savings = Savings(hours, saved, worth, "history" if hours_per_week is None else "given")
    little = max(LITTLE, math.exp(2 * noise))
    answer, why = _answer(report, bound, history, expected, best, little)
    before = faster_before(on_host) if on_host else None
    if before is not None and before[1] > little and answer != "unknown":
        slower = f"{before[0]} was {before[1]:.3g}× as fast as the last run: `unstall compare` says what is different"
        why = [slower, *why] if answer == "go on" else [slower]
        answer = "go on"
    return Stopping(
        answer=answer,
        why=why,
        program=entries[-1].program if entries else " ".join(report.run.command[:1]),
        steps_per_s=report.throughput.steps_per_s,
        bound=bound,
        iterations=history,
        expected_gain=expected,
        best=best,
        savings=savings,
    )


def most_telling(entries: Sequence[Entry]) -> Entry:
    """Of the runs of the code that ran last, the latest ``optimize``, else ``simplify``, else the last one.

    Remedies that were tested and ceilings that were measured hold as long as the code is the same.
    """
    last = entries[-1]
    same = [run for run in entries if last.revision and (run.revision, run.changes) == (last.revision, last.changes)]
    for kind in ("optimize", "simplify"):
        for run in reversed(same):
            if run.kind == kind:
                return run
    return last


def iterations(entries: Sequence[Entry]) -> list[Iteration]:
    """The states of the program in the order they first ran, with their gains.

    A state is code and arguments together. Where no revision is known, a run is of the same state as the one before it
    unless its speed differs by more than a little: nobody knows whether the code was changed in between.
    """
    listed: list[Iteration] = []
    best = 0.0
    for runs in _states(entries):
        speed = statistics.median(run.steps_per_s or 0.0 for run in runs)
        listed.append(Iteration(_label(runs[0]), speed, len(runs), speed / best if best else None))
        best = max(best, speed)
    return listed


def faster_before(entries: Sequence[Entry]) -> tuple[str, float] | None:
    """The fastest state and how many times as fast it was as the one that ran last; None if there is but one state.

    By samples a second where all runs have them: another batch size changes the steps.
    """
    states = _states(entries)
    last = next((state for state in states if entries[-1] in state), None)
    if last is None or len(states) < 2:
        return None
    samples = all(run.samples_per_s for state in states for run in state)
    speeds = [
        statistics.median((run.samples_per_s if samples else run.steps_per_s) or 0.0 for run in s) for s in states
    ]
    fastest = max(range(len(states)), key=lambda index: speeds[index])
    return _label(states[fastest][0]), speeds[fastest] / speeds[states.index(last)]


def _states(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The runs that have a speed, grouped by state, in the order in which the states first ran."""
    states: dict[tuple[str, ...], list[Entry]] = {}
    code: tuple[str, ...] = ()
    for entry in entries:
        if entry.steps_per_s and entry.steps_per_s > 0:
            if entry.revision:
                code = (entry.revision, entry.changes or "", *entry.command)
            elif not _alike(states.get(code, []), entry):
                code = (entry.id,)
            states.setdefault(code, []).append(entry)
    return list(states.values())


def _alike(state: Sequence[Entry], entry: Entry) -> bool:
    """Whether a run could be of a state of unknown revision."""
    if not state or state[0].revision or state[0].command != entry.command:
        return False
    before = statistics.median(run.steps_per_s or 0.0 for run in state)
    return max(before, entry.steps_per_s or 0.0) <= LITTLE * min(before, entry.steps_per_s or 0.0)


def _label(entry: Entry) -> str:
    """The revision as the history shows it; without one, the end of the run's id."""
    if entry.revision is None:
        return entry.id[-6:]
    return entry.revision[:8] + ("*" if entry.changes else "")


def expected_gain(history: Sequence[Iteration], bound: float | None) -> float | None:
    """Gain of one more iteration: the last two gains and the rate at which the logarithms of gains shrink.

    None with fewer than two gains. An iteration that made it slower gained nothing. Never more than the bound.
    """
    gains = [math.log(max(iteration.gain, 1.0)) for iteration in history if iteration.gain is not None]
    if len(gains) < 2:
        return None
    shrinking = [min(after / before, 1.0) for before, after in pairwise(gains) if before > 0]
    rate = statistics.median(shrinking) if shrinking else 1.0
    expected = math.exp(rate * (gains[-1] + gains[-2]) / 2)
    return min(expected, bound) if bound is not None else expected


def best_remedy(report: Report) -> BestRemedy | None:
    """What is known to help most: a tested remedy first, then one that is predicted to, then the verdict's culprit."""
    tested = [remedy for remedy in report.remedies if remedy.kept and remedy.speedup]
    if tested and report.total_speedup:
        names = ", ".join(remedy.name for remedy in tested)
        return BestRemedy(
            f"the patch of unstall optimize ({names})", report.total_speedup, "measured", is_ceiling=False
        )
    untried = [(remedy.predicted_speedup or 0.0, remedy.name) for remedy in report.remedies if remedy.speedup is None]
    gain, name = max(untried, default=(0.0, ""))
    if gain > 1:
        return BestRemedy(name, gain, "predicted", is_ceiling=False)
    stall = costliest(report)
    if stall is None or not report.run.steps or stall.pattern in WITHOUT_CULPRIT or not math.isfinite(stall.headroom):
        return None
    advice = stall.advice[0] if stall.advice else f"what makes it {stall.pattern}"
    expected, ceiling = stall.expected_gain, stall.ceiling
    if expected is not None:
        return BestRemedy(advice, expected.value, expected.known_by, False, (expected.low, expected.high))
    interval = (ceiling.low, ceiling.high) if ceiling else None
    return BestRemedy(advice, max(stall.headroom, 1.0), stall.headroom_known_by, True, interval)


def weekly_hours(entries: Sequence[Entry], now: datetime) -> float:
    """Hours a week that the program ran in the last four weeks, or since its first run if that is less long ago."""
    times = [(_time(entry.started), entry.duration_s) for entry in entries]
    recent = [(time, seconds) for time, seconds in times if time is not None and now - time <= _LOOK_BACK]
    if not recent:
        return 0.0
    first = min(time for time, _ in times if time is not None)
    weeks = min(max((now - first) / _WEEK, 1.0), _LOOK_BACK / _WEEK)
    return sum(seconds for _, seconds in recent) / 3600 / weeks


def _time(started: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(started.replace("Z", "+00:00"))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def _answer(
    report: Report,
    bound: float | None,
    history: Sequence[Iteration],
    expected: float | None,
    best: BestRemedy | None,
    little: float,
) -> tuple[Answer, list[str]]:
    verdict = report.verdict
    if report.run.steps and "untimed" in verdict.traits:
        return "go on", [f"{verdict.pattern}: {verdict.summary}" if verdict.summary else verdict.pattern]
    if bound is None:
        why = "the last run took no steps, so nothing is known of its speed"
        if report.run.steps:
            why = "the last run shows neither a known stall nor that it is healthy: unstall simplify measures it"
        return "unknown", [why]
    headroom = f"{bound:.3g}× is left if nothing held it up (Amdahl's law, {report.verdict.headroom_known_by})"
    unsure = ["the last verdict has low confidence: a longer run would tell more"]
    unsure = unsure if report.verdict.confidence == "low" else []
    if best is not None and not best.is_ceiling and best.known_by != "estimated" and best.gain > little:
        return "go on", [f"a known remedy gains {best.gain:.3g}× ({best.known_by})", *unsure]
    if report.verdict.pattern == HEALTHY:
        return "stop", ["the verdict is healthy: no one thing is worth a person's time", *unsure]
    if bound <= CLOSE_ENOUGH:
        return "stop", [f"{headroom}, and {CLOSE_ENOUGH:.3g}× is close enough", *unsure]
    if expected is not None and expected <= little:
        last = " and ".join(f"{iteration.gain:.3g}×" for iteration in history[-2:] if iteration.gain is not None)
        return "stop", [
            f"the last two changes gained {last}: one more is expected to gain {expected:.3g}×, "
            f"and under {little:.3g}× is little{' compared with the noise between runs' if little > LITTLE else ''}",
            f"{headroom}, but not by more of the same",
            *unsure,
        ]
    return "go on", [headroom, *_so_far(history), *unsure]


def _so_far(history: Sequence[Iteration]) -> list[str]:
    """What the changes have gained so far, as a reason to go on."""
    gains = [iteration.gain for iteration in history if iteration.gain is not None]
    if not gains:
        return ["only one state of the code has run so far, so the gain of changes is not known yet"]
    return [f"the last change gained {gains[-1]:.3g}×"] if gains[-1] > 1 else ["the last change made it no faster"]

"""straggler: one rank is late at the collectives, and all others wait for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from unstall.diagnose.blame import Placed, culprit
from unstall.diagnose.features import Features
from unstall.diagnose.ranks import exposed_s, own_s, spread
from unstall.records.report import Finding
from unstall.records.vocabulary import PhaseName
from unstall.text.units import percent, seconds

_CAUSES = {"data_wait": "transform", "callback": "logging", "env": "env", "before": "preprocess", "forward": "model"}
_SHARED = ("forward", "backward", "optimizer", "comm")  # phases that a seam times in every rank
_BY_HAND = ("other",)  # what no seam times; its samples are those in no shared phase


def match(features: Features) -> Finding | None:
    """The finding, or None when the numbers do not show the pattern."""
    ranks = features.measurement.ranks
    if len(ranks) < 2:
        return None
    late = max(ranks, key=own_s)
    others = [rank for rank in ranks if rank is not late]
    lag = own_s(late) - max(own_s(rank) for rank in others)
    headroom = features.headroom_without(min(lag, 0.99 * features.step_s))
    if headroom < 1.05 or spread(ranks) < 0.25 * max(exposed_s(rank) for rank in ranks):
        return None
    usual = {
        name: sum(rank.phases.get(name, 0.0) - rank.blocked.get(name, 0.0) * (name == "backward") for rank in others)
        / len(others)
        for name in late.phases
    }
    phase: PhaseName = max(
        (name for name in late.phases if name not in ("comm", "backward", "optimizer")),
        key=lambda name: late.phases[name] - usual[name],
        default="other",
    )
    placed = (
        features.blame.main if late.pid == features.measurement.main_pid else features.blame.ranks.get(late.rank, [])
    )
    total = sum(one.count for one in placed)
    samples = [one for one in placed if one.phase not in _SHARED] if phase in _BY_HAND else []
    samples = samples or [one for one in placed if one.phase == phase]
    if late.worker_pids and phase == "data_wait":
        samples = [one for one in features.blame.workers if one.sample.pid in late.worker_pids]
    return Finding(
        pattern="straggler",
        cause=_cause(phase, samples),
        culprit=culprit(samples, total, f"rank {late.rank}"),
        headroom=headroom,
        headroom_known_by="estimated",
        confidence="high",
        evidence=[
            f"rank {late.rank} works {seconds(own_s(late))} a step, the next slowest {seconds(own_s(late) - lag)}",
            f"rank {late.rank} spends {seconds(late.phases[phase])} in {phase}, the others {seconds(usual[phase])}",
            f"the others wait up to {percent(max(exposed_s(rank) for rank in others) / features.step_s)} of a step",
        ],
        advice=[f"make rank {late.rank}'s {phase} as cheap as the others', or share its work out evenly"],
    )


def _cause(phase: str, samples: Sequence[Placed]) -> str:
    """What the late rank does: by its phase, or, for code that no seam knows, by what most samples of it do."""
    if phase in _BY_HAND and samples:
        count: Counter[str] = Counter()
        for placed in samples:
            count[placed.phase] += placed.count
        phase = count.most_common(1)[0][0]
    return _CAUSES.get(phase, "python")

"""straggler: one rank is late at the collectives, and all others wait for it."""

from __future__ import annotations

from collections.abc import Sequence

from unstall.diagnose.blame import culprit
from unstall.diagnose.callers import loop_functions
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import Features, Pattern, UsualRemedy, name_of
from unstall.diagnose.placing import Placed, count, leading_phase
from unstall.diagnose.positions import BEFORE_MODEL
from unstall.diagnose.ranks import exposed_s, late_ranks, named, own_s, spread, unseen
from unstall.diagnose.thresholds import LATE_EXCESS, LATE_RANK_SHARE, SEEN, UNEVEN
from unstall.records.measurements import RankMeasurement
from unstall.records.report import Finding
from unstall.records.run import Utilization
from unstall.records.vocabulary import (
    BACKWARD,
    CALLBACK,
    COMM,
    DATA_WAIT,
    ENV,
    FORWARD,
    MODEL_PHASES,
    OPTIMIZER,
    OTHER,
    PhaseName,
)
from unstall.text.units import percent, seconds
from unstall.threshold import Range
from unstall.trace.features import TraceFeatures
from unstall.trace.metrics import TimelineMetrics

_CAUSES = {
    DATA_WAIT.name: "transform",
    CALLBACK.name: "logging",
    ENV.name: "env",
    BEFORE_MODEL: "preprocess",
    FORWARD.name: "model",
}
_SHARED = (*MODEL_PHASES, COMM.name)  # phases that a seam times in every rank
_UNTIMED = (OTHER.name,)  # what no seam times; its samples are those in no shared phase

_ON_DEVICE = {
    "idle_loader": ("waits for its next batch", "transform"),
    "idle_sync": ("waits for its device", "item"),
    "idle_submitting": ("submits its work late", "small-ops"),
    "idle_host": ("is busy on the host", "python"),
    "compute": ("computes longer", "kernel"),
    "copies": ("copies", "pageable"),
}


class Straggler(Pattern):
    """The slowest rank sets the pace of all."""

    host_knows_who = True
    name = "straggler"
    brief = "one rank is late, and the others wait for it"
    can_be_freed = False
    causes = ("transform", "logging", "env", "preprocess", "model", "python", "item", "small-ops", "kernel", "pageable")
    keeps_verdict = True
    advice = "make the late rank's work as cheap as the others', or share it out evenly"
    calibration = ((None, None, Range(0.1, 1.0, 1.2, "one program: 0.08 of the estimate: ranks share the cores")),)
    usual_remedies = (
        (None, UsualRemedy("an even share of the work", Range(0.0, 0.2, 0.8, "the late rank's work goes elsewhere"))),
    )

    def on_host(self, host: HostFeatures) -> Finding | None:
        """The rank that works longest between collectives, and what it does more of than the others."""
        ranks = host.measurement.ranks
        if len(ranks) < 2:
            return None
        late = max(ranks, key=own_s)
        all_late = late_ranks(ranks) or [late]
        others = [rank for rank in ranks if rank not in all_late]
        lag = own_s(late) - max(own_s(rank) for rank in others)
        headroom = host.headroom_without(min(lag, 0.99 * host.step_s))
        if headroom < SEEN or spread(ranks) < UNEVEN * max(exposed_s(rank) for rank in ranks):
            return None
        usual = {
            name: sum(
                rank.phases.get(name, 0.0) - rank.blocked.get(name, 0.0) * (name == BACKWARD.name) for rank in others
            )
            / len(others)
            for name in late.phases
        }
        phase: PhaseName = max(
            (name for name in late.phases if name not in (COMM.name, BACKWARD.name, OPTIMIZER.name)),
            key=lambda name: late.phases[name] - usual[name],
            default=OTHER.name,
        )
        placed = host.blame.main if late.pid == host.measurement.main_pid else host.blame.ranks.get(late.rank, [])
        total = count(placed)
        samples = [sample for sample in placed if sample.phase not in _SHARED] if phase in _UNTIMED else []
        samples = samples or [sample for sample in placed if sample.phase == phase]
        if late.worker_pids and phase == DATA_WAIT.name:
            samples = [worker for worker in host.blame.workers if worker.sample.pid in late.worker_pids]
        waits = max(exposed_s(rank) for rank in others)
        evidence = [
            f"rank {late.rank} works {seconds(own_s(late))} a step, the next slowest {seconds(own_s(late) - lag)}"
        ]
        if phase in late.phases:
            late_s, usual_s = seconds(late.phases[phase]), seconds(usual[phase])
            evidence.append(f"rank {late.rank} spends {late_s} in {phase}, the others {usual_s}")
        evidence.append(f"the others wait up to {percent(waits / host.step_s)} of a step")
        if len(all_late) > 1:
            evidence.append(f"late are {named(rank.rank for rank in all_late)}{_on_one_host(all_late)}")
        if late.arrives_last is not None and late.arrives_last > 1 / len(all_late) / 2:
            evidence.append(f"rank {late.rank} comes last to {percent(late.arrives_last)} of the exchanges")
        if host.measurement.unseen_ranks:
            evidence.append(f"{unseen(host.measurement)} not seen: a rank there may be later still")
        return self.finding(
            cause=_cause(phase, samples),
            culprit=culprit(samples, total, f"rank {late.rank}", loop_functions(samples)),
            headroom=headroom,
            confidence="low" if host.measurement.unseen_ranks else "high",
            evidence=evidence,
            advice=[f"make rank {late.rank}'s {phase} as cheap as the others', or share its work out evenly"],
        )

    def on_device(self, device: TraceFeatures) -> Finding | None:
        """By collectives in common: which rank comes last, and by how much."""
        late = device.ranks.late_share
        if late is None or late.max() < LATE_RANK_SHARE:
            return None
        index = int(late.argmax())
        metrics = device.ranks.metrics(index)
        name = device.ranks.name(index)
        reason = _reason(device, metrics)
        words, cause = _ON_DEVICE[reason]
        idle = reason.startswith("idle_")
        rows = metrics.after_gaps(reason.removeprefix("idle_"))[0] if idle else metrics.kernels.rows[:1]
        row = int(metrics.timeline.launch[rows[0]]) if len(rows) else -1
        share = float(late.max())
        return self.finding(
            summary="one rank comes late to the collectives",
            cause=cause,
            culprit=metrics.blame.culprit(row, metrics.shares[reason], f"rank {name}"),
            share=share,
            headroom=1 / max(1 - share, 0.05),
            confidence="high" if share >= 2 * LATE_RANK_SHARE else "medium",
            evidence=[
                f"the other ranks wait {percent(share)} of a step for rank {name} at collectives",
                f"rank {name} {words}: {percent(metrics.shares[reason])} of its step against "
                f"{percent(device.shares[reason])} over all ranks",
            ],
            advice=[f"look at rank {name} alone: its data, its host's load, its device's clocks"],
        )

    def rank(self, finding: Finding, features: Features) -> float:
        """What it does too much of is a finding of its own, which must not come before it."""
        return finding.headroom * (LATE_EXCESS if features.device is None else 1.0)

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Names the rank and what holds it up."""
        culprit = finding.culprit
        if culprit is None:
            return "one rank comes late to the collectives"
        who = culprit.where if culprit.process == "rank" else "one rank"
        return f"{who} comes late to the collectives, held up by {name_of(culprit)}"


def _cause(phase: str, samples: Sequence[Placed]) -> str:
    """What the late rank does: by its phase, or, for code that no seam knows, by what most samples of it do."""
    if phase in _UNTIMED:
        phase = leading_phase(samples, otherwise=phase)
    return _CAUSES.get(phase, "python")


def _on_one_host(ranks: Sequence[RankMeasurement]) -> str:
    hosts = {rank.host for rank in ranks}
    return f", all on {hosts.pop()}" if len(hosts) == 1 and hosts != {""} else ""


def _reason(device: TraceFeatures, metrics: TimelineMetrics) -> str:
    """What this rank does more of than the others."""
    return max(_ON_DEVICE, key=lambda name: metrics.shares[name] - device.shares[name])


PATTERN = Straggler()

"""oversubscribed: threads of the program take each other's cores, so that the model's wait for them."""

from __future__ import annotations

import math

from unstall.child.seams import modules, optimizer
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.own_threads import ONE_THREAD, among_processes_s
from unstall.diagnose.patterns.base import Features, Pattern, UsualRemedy, name_of, of_step, part
from unstall.diagnose.positions import HOST_PLACES
from unstall.diagnose.thresholds import MOSTLY_CONTENDED, OVERSUBSCRIBED
from unstall.records.report import Culprit, Finding
from unstall.records.run import Utilization
from unstall.text.units import percent
from unstall.threshold import Range

_A_SHARE_EACH = (
    "give each process its share of the cores: torch.set_num_threads(1) in what a pool starts it with, or "
    "OMP_NUM_THREADS=1 in the environment"
)


class Oversubscribed(Pattern):
    """More threads than cores: a library's pool beside torch's, or more threads of torch's than there are cores."""

    name = "oversubscribed"
    brief = "threads of the program's own libraries take each other's cores"
    causes = ("thread-pools", "threads", "processes")
    advice = ONE_THREAD
    by_hand = (
        ("processes", _A_SHARE_EACH),
        ("threads", "no more threads than cores: torch.set_num_threads(), OMP_NUM_THREADS"),
        (None, ONE_THREAD),
    )
    calibration = (
        (
            "processes",
            None,
            Range(0.8, 4.0, 12.0, "two programs, 4 to 20 and once 75: teams spin for cores that they lack"),
        ),
        (
            None,
            None,
            Range(
                0.8,
                2.5,
                5.5,
                "three programs: 2.5 to 5.0; the quickest steps are slowed, too, and BLAS by its own team",
            ),
        ),
    )
    usual_remedies = (
        ("processes", UsualRemedy("one thread a process", Range(0.0, 0.1, 0.6, "a sweep of two processes"))),
        (None, UsualRemedy("one thread for BLAS", Range(0.0, 0.0, 0.6, "two programs: 0"))),
    )

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By what the model takes beyond its quickest steps, while its threads wait for cores that nobody else has.

        Where several processes compute no step is a quick one: by how long the main thread waits.
        """
        among_s, lost_s, measured = among_processes_s(host.measurement), host.contended_s, host.measurement
        if among_s >= OVERSUBSCRIBED * host.step_s:
            return self._among_processes(host, among_s)
        share = lost_s / host.step_s
        if share < OVERSUBSCRIBED:
            return None
        threads = measured.model.threads
        cause = "threads" if threads > measured.cores else "thread-pools"
        evidence = [
            f"{of_step(share, lost_s)}, the model's threads wait for cores that other threads of the program have",
            f"the main thread waits for a core {percent(measured.run_delay or 0.0)} of the time, and no other program "
            "takes one",
        ]
        if cause == "threads":
            evidence.append(f"torch computes with {threads} threads on {measured.cores:g} cores")
            advice = [f"torch.set_num_threads({max(1, int(measured.cores))}), or OMP_NUM_THREADS: no more than cores"]
        else:
            advice = [ONE_THREAD, "or compute it with torch, whose threads are the model's"]
        return self.finding(
            cause=cause,
            culprit=None if cause == "threads" else _culprit(host),
            share=share,
            headroom=host.headroom_without(lost_s),
            confidence="high" if share >= MOSTLY_CONTENDED else "medium",
            evidence=evidence,
            advice=advice,
        )

    def _among_processes(self, host: HostFeatures, lost_s: float) -> Finding:
        measured, share = host.measurement, lost_s / host.step_s
        threads = measured.model.threads
        return self.finding(
            cause="processes",
            culprit=host.caller(optimizer.STEP, modules.FORWARD, share=share),
            share=share,
            headroom=host.headroom_without(lost_s),
            confidence="high" if share >= MOSTLY_CONTENDED else "medium",
            evidence=[
                f"{measured.computing} processes of the program compute at the same time, each with {threads} threads, "
                f"on {measured.cores:g} cores",
                f"the main thread waits for a core {percent(measured.run_delay or 0.0)} of the time, and no other "
                "program takes one",
            ],
            advice=[_A_SHARE_EACH],
        )

    def rank(self, finding: Finding, features: Features) -> float:
        """Its ceiling, for the loss that shows is a part of it; and ahead of the model, whose time it makes up.

        Where processes take much of each other's time it comes first: no other figure of such a step would stand alone.
        """
        if finding.cause == "processes" and (finding.share or 0.0) >= MOSTLY_CONTENDED:
            return math.inf
        host = features.host
        assert host is not None
        ceiling = finding.ceiling.value if finding.ceiling is not None else finding.headroom
        return max(ceiling, 1.001 * host.headroom_without(host.model_s))

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Names what computes beside torch."""
        name = name_of(finding.culprit)
        return f"{part(finding)} is lost to threads that take each other's cores{name and f', those of {name}'}"


def _culprit(host: HostFeatures) -> Culprit | None:
    """Where the program computes outside of the model."""
    phases = [phase.name for phase in host.measurement.plugins.all_phases if not phase.model]
    return host.blame.main_culprit(host.blame.in_phase(*HOST_PLACES, *phases))


PATTERN = Oversubscribed()

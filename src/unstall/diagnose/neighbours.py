"""The step without what other programs added to it: the time that threads waited for cores these had taken."""

from __future__ import annotations

from unstall.diagnose.thresholds import LEAST_LEFT, NEIGHBOURS
from unstall.records.measurements import Measurement
from unstall.records.report import PhaseTime
from unstall.records.vocabulary import COMM, DATA_WAIT, PhaseName


def without_neighbours(measurement: Measurement, attributed: dict[PhaseName, float]) -> dict[PhaseName, float]:
    """The phases less the time that other programs kept threads of this one from a core.

    Of the delays, the part is other programs' that they have in the cores not left to the main process. Each is
    taken from the phase that it occurred in: the main thread's own as it was timed there; that of the other threads
    from the phases in which the main thread can have waited for them, off the cores, or in an operator that a team
    computes. No phase becomes shorter than the time in which the main thread computed in it.

    Args:
        measurement: of the run.
        attributed: seconds a step by phase.
    """
    if measurement.other_cores < NEIGHBOURS or not measurement.team_delay_s:
        return dict(attributed)
    workers = measurement.worker_cpu_s / measurement.step.mean
    theirs = measurement.other_cores / (measurement.other_cores + workers)
    own = min(measurement.run_delay or 0.0, 1.0)
    team_s = max(0.0, measurement.team_delay_s - own * measurement.step.mean)
    timed = {phase.name: phase for phase in measurement.phases}
    waits = {name: _wait_s(measurement, timed.get(name), seconds) for name, seconds in attributed.items()}
    all_waits = sum(waits.values())
    stretch = _stretch(measurement, team_s)
    undisturbed = {}
    for name, seconds in attributed.items():
        delay_s = _delay_share(timed.get(name), own) * seconds
        team = team_s * waits[name] / all_waits if all_waits else 0.0
        idle_s = min(_idle_share(timed.get(name)) * seconds, waits[name])
        team = min(team, waits[name] - (1 - stretch) * idle_s)
        least = max(LEAST_LEFT * seconds, min(_cpu_share(timed.get(name)) * seconds, seconds))
        undisturbed[name] = max(seconds - theirs * (delay_s + team), least)
    return undisturbed


def _stretch(measurement: Measurement, team_s: float) -> float:
    """Largest part of an idle wait for other threads that can be their delay, 0..1.

    Threads that computed for C seconds and had no core for D, together, were D / (C + D) of their time without one; who
    sleeps until they are done sleeps so much longer, however many of them were kept waiting at once. (Of a team that
    spins at a barrier this does not hold: there the others compute while they wait for one.)

    Args:
        measurement: of the run.
        team_s: seconds a step that the threads beside the main one had no core.
    """
    main_s = sum(phase.cpu_s or 0.0 for phase in measurement.phases)
    computed_s = max(0.0, measurement.main_cpu_s - main_s)
    return team_s / (computed_s + team_s) if team_s else 0.0


def _wait_s(measurement: Measurement, phase: PhaseTime | None, seconds: float) -> float:
    """Seconds of a phase in which the main thread can have waited for other threads of its process.

    Not for workers of the loader, for other ranks or for the network: these are no threads of it.
    """
    if phase is None or not phase.mean_s:
        return 0.0
    if any(phase.name == known.name and known.model for known in measurement.plugins.all_phases):
        return seconds
    for_workers = phase.name == DATA_WAIT.name and measurement.loader is not None and measurement.loader.workers
    if for_workers or phase.name == COMM.name:
        return 0.0
    return _idle_share(phase) * seconds


def _idle_share(phase: PhaseTime | None) -> float:
    """Share of a phase that the main thread slept, but for the network."""
    if phase is None or not phase.mean_s:
        return 0.0
    return max(0.0, phase.blocked_s - phase.network_s) / phase.mean_s


def _delay_share(phase: PhaseTime | None, own: float) -> float:
    """Share of a phase that the main thread waited for a core; ``own``: of the whole step, where it was not timed."""
    if phase is None or phase.cpu_s is None or not phase.mean_s:
        return own
    return max(0.0, phase.mean_s - phase.cpu_s - phase.blocked_s) / phase.mean_s


def _cpu_share(phase: PhaseTime | None) -> float:
    """Share of a phase that the main thread computed; 0 where that was not measured."""
    return phase.cpu_s / phase.mean_s if phase is not None and phase.cpu_s is not None and phase.mean_s else 0.0

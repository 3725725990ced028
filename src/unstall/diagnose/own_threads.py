"""Threads of one program that take each other's cores, as those of NumPy's BLAS and of torch do.

Each library has a team of its own, as large as there are cores. A thread that has computed spins for a while before it
sleeps, and a team waits for the slowest of its threads: one small product in NumPy between two steps makes all
operators of torch that follow several times slower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unstall.diagnose.thresholds import MOST, NEIGHBOURS, OTHER_THREADS, OVERSUBSCRIBED, OWN_DELAY, OWN_WORKERS
from unstall.records.measurements import Measurement
from unstall.records.vocabulary import DISPATCH
from unstall.text.units import seconds

if TYPE_CHECKING:
    from unstall.diagnose.features import HostFeatures

ONE_THREAD = (
    "give BLAS one thread: OPENBLAS_NUM_THREADS=1 in the environment (or MKL_NUM_THREADS, where NumPy has MKL), or "
    "threadpoolctl.threadpool_limits(1, 'blas') before the loop"
)


def contended_s(measurement: Measurement) -> float:
    """Seconds a step by which the model's phases are longer than in the steps in which its threads had the cores.

    No more than the threads waited for cores. A call that only submits work takes as long as the queue before it,
    and tells nothing. 0 where they hardly did, or where somebody else can have had the cores: other programs, workers,
    ranks, or other Python threads, which stack samples show.
    """
    if not measurement.unhindered_s or measurement.disturbed or (measurement.run_delay or 0.0) < OWN_DELAY:
        return 0.0
    step_s = measurement.step.mean
    if measurement.other_cores >= NEIGHBOURS or measurement.worker_cpu_s >= OWN_WORKERS * step_s:
        return 0.0
    if measurement.has_peers or _python_threads(measurement) >= OTHER_THREADS:
        return 0.0
    model = {phase.name for phase in measurement.plugins.all_phases if phase.model} - {DISPATCH.name}
    longer_s = sum(
        max(0.0, phase.mean_s - measurement.unhindered_s[phase.name])
        for phase in measurement.phases
        if phase.name in model and phase.name in measurement.unhindered_s
    )
    return min(longer_s, (measurement.run_delay or 0.0) * step_s + measurement.team_delay_s)


def among_processes_s(measurement: Measurement) -> float:
    """Seconds a step that the main thread waits for cores while processes of the program compute with too many threads.

    Each of several processes has a team as large as there are cores, unless somebody says otherwise. It is a part of
    what that costs: who has a core waits, too, for the slowest of its team. 0 where others can have had the cores.
    """
    threads = measurement.computing * measurement.model.threads
    waits = measurement.run_delay or 0.0
    if measurement.computing < 2 or threads <= measurement.cores or waits < OWN_DELAY:
        return 0.0
    return waits * measurement.step.mean if measurement.other_cores < NEIGHBOURS else 0.0


def of_other_work(host: HostFeatures, taken_s: float) -> tuple[float, list[str], list[str]]:
    """Seconds a step that go with other work, where it is the larger part of all outside of the model.

    With evidence and advice; 0 and none where threads do not wait for each other.
    """
    lost_s = host.contended_s
    if lost_s < OVERSUBSCRIBED * host.step_s or taken_s < MOST * (host.step_s - host.model_s):
        return 0.0, [], []
    line = f"the model takes {seconds(lost_s)} a step longer than where its threads have the cores that this takes"
    return lost_s, [line], [ONE_THREAD]


def _python_threads(measurement: Measurement) -> float:
    """Samples of other threads of the main process that were at work, for each of the main thread."""
    own = [sample for sample in measurement.samples if sample.pid == measurement.main_pid]
    main = sum(sample.count for sample in own if sample.main_thread)
    return (sum(sample.count for sample in own) - main) / main if main else 0.0

"""What the wait for a batch costs a step, who makes the batches, and why they come late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unstall.child.seams.loader import NEXT
from unstall.diagnose import vocabulary
from unstall.diagnose.features import HostFeatures, network_share
from unstall.diagnose.placing import Placed, count
from unstall.diagnose.source import calls_at
from unstall.diagnose.thresholds import (
    BLOCKED,
    DELAYING_CPU,
    FULL_CORES,
    LEADS,
    LOADER_CPU,
    MOST,
    NETWORK,
    READS_BYTES,
    RESTARTING,
    TEAM_DELAYED,
    THREADED,
)
from unstall.records.measurements import LoaderMeasurement
from unstall.records.report import ProcessRole
from unstall.records.vocabulary import DATA_WAIT


@dataclass
class BatchWait:
    """What waiting for data costs a step, and what the step would be without."""

    wait_s: float
    body_s: float
    """The rest of the step, as it is."""
    free_s: float
    """The rest of the step without the wait: where workers hold the cores, what it takes while they are quiet."""
    contended: bool


def batch_wait(host: HostFeatures, loader: LoaderMeasurement) -> BatchWait:
    """What a step waits for its batch; where workers or thread pools hold the cores, by processor sharing."""
    step, measured = host.step_s, host.measurement
    wait_s = host.phase_s(DATA_WAIT.name)
    body_s = max(step - wait_s, 0.005 * step)
    cpu_s = measured.worker_cpu_s + measured.main_cpu_s
    # Of its own making: pools of two libraries (NumPy's and torch's), or workers, take the cores from each other.
    busy_cores = host.used_cores + measured.other_cores
    delayed = busy_cores > 0 and host.used_cores / busy_cores * measured.team_delay_s >= TEAM_DELAYED * step
    of_workers = measured.worker_cpu_s / cpu_s if loader.workers and cpu_s else 0.0
    loads_itself = not loader.workers and wait_s >= LEADS * step  # else no loader's threads are there to collide with
    contended = (of_workers >= LOADER_CPU and host.demand >= FULL_CORES) or (
        delayed and (of_workers >= DELAYING_CPU or loads_itself)
    )
    if not contended:
        return BatchWait(wait_s, body_s, body_s, contended)
    # k runnable threads share C cores: each runs at the rate C/k (processor sharing).
    serving_s = max(measured.worker_cpu_s, loader.service_s * loader.batches_per_step)
    threads = min(max(1.0, measured.model.threads), measured.cores)
    shared = max(1.0, (min(loader.workers, serving_s / step) + threads) / measured.cores)
    # A team of threads waits for the one that has no core: the mean may be ten times what the model takes alone.
    quick_s = sum(seconds for phase, seconds in measured.unhindered_s.items() if phase != DATA_WAIT.name)
    return BatchWait(wait_s, body_s, min(body_s / shared, max(quick_s, 0.005 * step) if quick_s else body_s), contended)


def making_batches(host: HostFeatures, loader: LoaderMeasurement) -> tuple[list[Placed], ProcessRole]:
    """Samples of who makes the batches: workers, other threads, or the main thread as it waits.

    Where a sampler keeps it waiting, no batch can be made before that.
    """
    waiting = host.blame.in_phase(DATA_WAIT.name)
    if _share(waiting, _draws) >= MOST:
        return [placed for placed in waiting if _draws(placed)], "main"
    if loader.workers:
        return host.worker_samples(), "worker"
    if _share(waiting, lambda placed: _only_waits(host, placed)) >= MOST:
        if host.blame.threads:
            return host.blame.threads, "main"
        if host.worker_samples():
            return host.worker_samples(), "worker"
    return waiting, "main"


def _only_waits(host: HostFeatures, placed: Placed) -> bool:
    """Whether the program's deepest line is the one that asks a loader for a batch: others make it."""
    asking = {(site.file, site.line) for site in host.sites(NEXT)}
    return bool(placed.program) and (placed.program[-1][0].file, placed.program[-1][0].line) in asking


def cause_of_wait(host: HostFeatures, loader: LoaderMeasurement, samples: list[Placed]) -> str:
    """Why batches come late: a cause of :class:`unstall.diagnose.patterns.input_bound.InputBound`."""
    measured = host.measurement
    if _share(samples, _draws) >= MOST:
        return "sampler"
    wait_s = host.phase_s(DATA_WAIT.name)
    starting = loader.workers and loader.start_s >= MOST * wait_s and wait_s > RESTARTING * host.step_s
    if starting and not loader.persistent_workers:  # those that stay only fill the queue again
        return "workers"
    service = loader.service_s
    network = network_share(host, DATA_WAIT.name)
    if service:
        network = max(network, loader.service_network_s / service)
    blocked = blocked_share(host, loader)
    by_library = _share(samples, lambda placed: vocabulary.is_network_library(placed.sample.frames))
    if network >= NETWORK or (by_library >= MOST and blocked >= BLOCKED):
        return "network"
    if service and loader.collate_s >= MOST * service:
        return "collate"
    reading = _share(samples, _reads)
    if reading >= MOST or (blocked >= MOST and (loader.workers == 0 or service) and _reads_files(host)):
        return "storage"
    if loader.workers and loader.service_cpu_s and loader.batches_per_step:
        outside = measured.worker_cpu_s / (loader.service_cpu_s * loader.batches_per_step)
        if outside > THREADED and host.demand > FULL_CORES:
            return "threads"
    return "transform"


def _share(samples: list[Placed], wanted: Callable[[Placed], bool]) -> float:
    return count(placed for placed in samples if wanted(placed)) / count(samples) if samples else 0.0


def _draws(placed: Placed) -> bool:
    return vocabulary.draws_samples(placed.sample.frames)


def _reads(placed: Placed) -> bool:
    """Whether the sample is in a call that reads a file or a database."""
    if not placed.program:
        return False
    frame, _ = placed.program[-1]
    deeper = placed.sample.frames[-1]
    if deeper != frame and not vocabulary.reads_storage(deeper):
        return False
    return vocabulary.calls_storage(calls_at(frame.file, frame.line))


def _reads_files(host: HostFeatures) -> bool:
    """Whether the program asked files for anything in its steps: who is off the cores may wait for something else."""
    return host.measurement.read_chars + host.measurement.disk_read >= READS_BYTES


def blocked_share(host: HostFeatures, loader: LoaderMeasurement) -> float:
    """Share of the time to make a batch that it is off the cores, 0 to 1."""
    if loader.service_s:
        return loader.service_blocked_s / loader.service_s
    phase = host.measurement.phase(DATA_WAIT.name)
    return phase.blocked_s / phase.mean_s if phase and phase.mean_s else 0.0

"""input-bound: the step waits for its next batch, or the workers that make it take the cores from the model.

The second form hides from phase timers: `data_wait` is small because the model is slow too, for want of cores. It is
told by the CPU law (throughput cannot exceed cores / (core-seconds of loader + body)) and the main thread's run-delay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unstall.diagnose import vocabulary
from unstall.diagnose.blame import Placed, culprit, line_culprit, short
from unstall.diagnose.features import Features, network_share
from unstall.diagnose.source import calls_at
from unstall.records.measurements import LoaderMeasurement
from unstall.records.report import Culprit, Finding
from unstall.text.units import percent, seconds

_FULL = 0.75  # demand from which the cores count as full
_LOADER_CPU = 0.25  # share of the CPU time that workers must take to be blamed for full cores
_MOST = 0.5


@dataclass
class _Wait:
    """What waiting for data costs a step, and what the step would be without."""

    wait_s: float
    stretch: float
    """How many times longer the rest of the step takes because workers hold cores."""
    free_s: float


def match(features: Features) -> Finding | None:
    """The finding, or None when the numbers do not show the pattern."""
    loader = features.measurement.loader
    wait = _wait(features, loader)
    headroom = features.step_s / wait.free_s
    if headroom < 1.05:
        return None
    samples, where = _samples(features, loader)
    cause = _cause(features, loader, samples)
    total = features.worker_total if where.startswith("worker") else features.blame.total
    blamed = _culprit(features, cause, samples, total, where)
    return Finding(
        pattern="input-bound",
        cause=cause,
        culprit=blamed,
        headroom=headroom,
        headroom_known_by="predicted" if loader and loader.service_s else "estimated",
        confidence="high",
        evidence=_evidence(features, loader, wait, cause),
        advice=_advice(features, loader, cause),
    )


def _wait(features: Features, loader: LoaderMeasurement | None) -> _Wait:
    step = features.step_s
    wait_s = features.seconds.get("data_wait", 0.0)
    body = max(step - wait_s, 0.005 * step)
    stretch = 1.0
    measured = features.measurement
    cpu = measured.worker_cpu_s + measured.main_cpu_s
    if loader and loader.workers and cpu:
        contended = features.demand >= _FULL and measured.worker_cpu_s >= _LOADER_CPU * cpu
        if contended:
            # k runnable threads share C cores: each runs at the rate C/k (processor sharing).
            serving = min(loader.workers, measured.worker_cpu_s / measured.step.mean)
            busy = min(loader.workers, loader.service_s * loader.batches_per_step / measured.step.mean)
            threads = min(max(1.0, measured.model.threads), measured.cores)
            stretch = max(1.0, (max(serving, busy) + threads) / measured.cores)
            # What the threads of the model's team waited for a core, counted by the scheduler, may be more.
            waited = min(measured.team_delay_s, 0.9 * body)
            stretch = max(stretch, body / (body - waited))
    return _Wait(wait_s, stretch, body / stretch)


def _samples(features: Features, loader: LoaderMeasurement | None) -> tuple[list[Placed], str]:
    if loader and loader.workers:
        return features.worker_samples(), "worker"
    return features.blame.in_phase("data_wait"), "main"


def _cause(features: Features, loader: LoaderMeasurement | None, samples: list[Placed]) -> str:
    measured = features.measurement
    wait_s = features.seconds.get("data_wait", 0.0)
    if loader and loader.workers and loader.start_s >= _MOST * wait_s and wait_s > 0.1 * features.step_s:
        return "workers"
    count = sum(placed.count for placed in samples)
    service = loader.service_s if loader else 0.0
    network = network_share(features, "data_wait")
    if loader and service:
        network = max(network, loader.service_network_s / service)
    blocked = _blocked_share(features, loader)
    by_library = _share(samples, count, lambda placed: vocabulary.is_network_library(placed.sample.frames))
    if network >= 0.4 or (by_library >= _MOST and blocked >= 0.3):
        return "network"
    if loader and service and loader.collate_s >= _MOST * service:
        return "collate"
    reading = _share(samples, count, _reads)
    if reading >= _MOST or (blocked >= _MOST and (loader is None or loader.workers == 0 or service)):
        return "storage"
    if loader and loader.workers and loader.service_cpu_s and loader.batches_per_step:
        outside = measured.worker_cpu_s / (loader.service_cpu_s * loader.batches_per_step)
        if outside > 1.6 and features.demand > _FULL:
            return "threads"
    return "transform"


def _share(samples: list[Placed], count: int, wanted: Callable[[Placed], bool]) -> float:
    return sum(placed.count for placed in samples if wanted(placed)) / count if count else 0.0


def _reads(placed: Placed) -> bool:
    """Whether the sample is in a call that reads a file or a database."""
    if not placed.user:
        return False
    frame, _ = placed.user[-1]
    deeper = placed.sample.frames[-1]
    if deeper != frame and not vocabulary.reads_storage(deeper):
        return False
    return vocabulary.calls_storage(calls_at(frame.file, frame.line))


def _blocked_share(features: Features, loader: LoaderMeasurement | None) -> float:
    if loader and loader.service_s:
        return loader.service_blocked_s / loader.service_s
    phase = features.measurement.phase("data_wait")
    return phase.blocked_s / phase.mean_s if phase and phase.mean_s else 0.0


def _culprit(features: Features, cause: str, samples: list[Placed], total: int, where: str) -> Culprit | None:
    if cause == "workers":
        site = next((site for site in features.measurement.sites if site.seam == "~data.iter"), None)
        return line_culprit(site, share=min(1.0, features.share("data_wait"))) if site else None
    if cause == "collate":
        name = (features.measurement.loader.collate if features.measurement.loader else "").rpartition(".")[2]
        inside = [placed for placed in samples if any(short(frame.function) == name for frame, _ in placed.user)]
        return culprit(inside or samples, total, where)
    below_loop = [placed for placed in samples if placed.user]
    return culprit(below_loop, total, where)


def _evidence(features: Features, loader: LoaderMeasurement | None, wait: _Wait, cause: str) -> list[str]:
    measured = features.measurement
    lines = [f"{percent(wait.wait_s / features.step_s)} of a step, {seconds(wait.wait_s)}, waits for the next batch"]
    if loader and loader.service_s:
        who = (
            f"{loader.workers} workers"
            if loader.workers > 1
            else ("a worker" if loader.workers else "the main process")
        )
        each = "each " if loader.workers > 1 else ""
        lines.append(
            f"{who} {'need' if loader.workers > 1 else 'needs'} {each}{seconds(loader.service_s)} to make a batch, "
            f"{seconds(loader.service_cpu_s)} of it on a core"
        )
    if wait.stretch > 1.05:
        delay = (
            f"; the main thread waits for a core {percent(measured.run_delay)} of the time"
            if measured.run_delay
            else ""
        )
        lines.append(
            f"loader and model need {features.demand * measured.cores:.1f} of {measured.cores:g} cores, "
            f"the workers {measured.worker_cpu_s / measured.step.mean:.1f}{delay}"
        )
    if cause == "workers" and loader:
        lines.append(
            f"starting workers and their first batch takes {seconds(loader.start_s)} a step, {loader.epochs} epochs"
        )
    if cause == "network" and loader and loader.service_network_s:
        lines.append(
            f"{percent(loader.service_network_s / loader.service_s)} of making a batch is blocked in network I/O"
        )
    if cause == "collate" and loader:
        lines.append(f"{percent(loader.collate_s / loader.service_s)} of making a batch is in collate_fn")
    if cause == "storage" and loader and loader.service_s and loader.service_blocked_s > 0.2 * loader.service_s:
        lines.append(
            f"{percent(loader.service_blocked_s / loader.service_s)} of making a batch is blocked, off the cores"
        )
    if cause == "storage" and measured.read_chars:
        lines.append(f"{measured.read_chars / 1e6:.1f} MB a step are read from files")
    return lines


def _advice(features: Features, loader: LoaderMeasurement | None, cause: str) -> list[str]:
    measured = features.measurement
    workers = loader.workers if loader else 0
    spare = features.spare_cores
    advice = {
        "network": "fetch in parallel or ahead, reuse connections, or keep a local copy",
        "storage": "read only what is needed (an index, memory mapping, sequential shards), or cache it",
        "collate": "build the batch with whole-array operations (torch.stack, pad_sequence), no Python loop",
        "transform": "make this function cheaper: whole-array or library operations, or do it once and cache it",
        "workers": "keep the workers: DataLoader(..., persistent_workers=True), and do their set-up once",
        "threads": "one thread in each worker: torch.set_num_threads(1) and cv2.setNumThreads(0) in worker_init_fn",
    }
    lines = [advice[cause]]
    blocked = cause in ("network", "storage") and _blocked_share(features, loader) > _MOST
    if loader and cause not in ("workers", "threads"):
        if blocked:
            lines.append(f"num_workers={max(4, 2 * workers)}: the workers mostly wait, so they need no more cores")
        elif workers == 0 and spare > 0.7 and not loader.iterable:
            lines.append(
                f"num_workers={max(1, round(spare))}: {spare:.1f} of {measured.cores:g} cores are idle meanwhile"
            )
        elif workers and spare > 0.7:
            lines.append(
                f"num_workers={workers + max(1, round(spare))}: {spare:.1f} of {measured.cores:g} cores are idle"
            )
        elif workers:
            lines.append("not more workers: the cores are full already")
    return lines

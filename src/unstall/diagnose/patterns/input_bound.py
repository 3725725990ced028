"""input-bound: the step waits for its next batch, or the workers that make it take the cores from the model.

The second form hides from phase timers: `data_wait` is small because the model is slow too, for want of cores. It is
told by the CPU law (throughput cannot exceed cores / (core-seconds of loader + body)) and the main thread's run-delay.
On a device: it is idle while the main loop waits for its next batch.
"""

from __future__ import annotations

from unstall.child.seams.loader import EPOCH
from unstall.diagnose.batch_wait import BatchWait, batch_wait, blocked_share, cause_of_wait, making_batches
from unstall.diagnose.blame import culprit, line_culprit
from unstall.diagnose.features import HostFeatures
from unstall.diagnose.patterns.base import BY_REWRITING, Features, Pattern, UsualRemedy, name_of, of_step, part
from unstall.diagnose.placing import Placed
from unstall.diagnose.program_frames import short
from unstall.diagnose.thresholds import (
    LOADER_SHARE,
    MOST,
    NOTABLE_BLOCKED,
    NOTABLE_DELAY,
    READ_AHEAD,
    SEEN,
    SPARE_CORE,
    UNDISTURBED,
)
from unstall.records.measurements import LoaderMeasurement
from unstall.records.report import Culprit, Finding, ProcessRole
from unstall.records.run import Utilization
from unstall.records.vocabulary import DATA_WAIT
from unstall.text.units import known, percent, seconds
from unstall.threshold import Range
from unstall.trace.features import TraceFeatures

_ADVICE = {
    "network": "fetch in parallel or ahead, reuse connections, or keep a local copy",
    "storage": "read only what is needed (an index, memory mapping, sequential shards), or cache it",
    "collate": "build the batch with whole-array operations (torch.stack, pad_sequence), not a Python loop",
    "transform": "make this function cheaper: whole-array or library operations, or do it once and cache it",
    "sampler": "draw all indices at once, with array operations (torch.multinomial), or once for all epochs",
    "workers": "keep the workers: DataLoader(..., persistent_workers=True), and do their set-up once",
    "threads": "one thread in each worker: torch.set_num_threads(1) and cv2.setNumThreads(0) in worker_init_fn",
}


_WAITING = {
    "storage": Range(0.8, 1.4, 2.2, "zoo: 1.2 to 1.7 of two: what is read waits for the disk's queue, too"),
    "network": Range(0.8, 2.0, 4.0, "zoo: 3.0 of one: after such a wait, cores and torch's threads are asleep"),
}


class InputBound(Pattern):
    """Batches come too late, or at the price of the model's cores."""

    host_knows_who = True
    hides = True  # workers that take the cores make the model slow, and nothing waits
    name = "input-bound"
    brief = "the step waits for data, or the loader takes its cores"
    doing = ((DATA_WAIT.name, "waits for the next batch"),)
    device_uses = ("loader",)
    causes = ("storage", "network", "transform", "collate", "sampler", "workers", "threads")
    phases = (DATA_WAIT.name,)
    headroom_is_of_phases = True
    advice = "make the batches cheaper: `unstall data` shows each stage"
    by_hand = (
        (
            "network",
            "fetch a batch's samples at once with threads in __getitems__, over a requests.Session,"
            " which keeps its connections open",
        ),
        (
            "storage",
            "read it once and keep the result, or read a batch's samples at once with threads in __getitems__",
        ),
        (
            "collate",
            "stack with default_collate, which writes into the memory that workers share; send "
            "images as bytes and convert them to float on the device; torch.tensor takes one array, not "
            "a list of them",
        ),
        (
            "transform",
            "use array or library operations, keep what the first transforms give, or decode JPEGs "
            "at reduced size (Image.draft)",
        ),
        (
            "sampler",
            "draw all indices at once, with array operations, or once for all epochs",
        ),
        (
            "threads",
            "divide the cores: fewer threads for torch, loader workers on other cores "
            "(os.sched_setaffinity in worker_init_fn)",
        ),
        (None, "rewrite it with array or library operations, or do it once and keep the result"),
    )
    calibration = (
        (
            None,
            "model",
            Range(
                0.6,
                1.0,
                1.6,
                "docs/accuracy.md: 0.5 to 1.6 of nine programs, where loader and model collide 1.2 and 1.6",
            ),
        ),
        *((cause, kind, off) for cause, off in _WAITING.items() for kind in ("timed", "sampled")),
        (None, None, Range(0.7, 1.1, 1.9, "zoo: 0.7 to 1.9, median 1.1 of seven; held out 0.9 to 1.5")),
    )
    usual_remedies = (
        ("transform", UsualRemedy("a cheaper transform", Range(0.0, 0.08, 0.6, BY_REWRITING))),
        ("collate", UsualRemedy("collating by whole arrays", Range(0.0, 0.1, 0.4, "copying stays; zoo: 0.08"))),
        ("sampler", UsualRemedy("indices drawn at once", Range(0.0, 0.05, 0.6, BY_REWRITING))),
        ("storage", UsualRemedy("reading less, or once", Range(0.0, 0.05, 0.5, "zoo: 0.01; else the disk's"))),
        ("network", UsualRemedy("fetching in parallel", Range(0.0, 0.1, 0.5, "zoo: 0; else the bandwidth's"))),
        ("workers", UsualRemedy("persistent workers", Range(0.0, 0.1, 0.4, "the first batch of an epoch stays"))),
        ("threads", UsualRemedy("fewer threads", Range(0.1, 0.5, 0.9, "the work stays, its waiting goes"))),
        (None, UsualRemedy("loading ahead in workers", Range(0.0, 0.3, 0.8, "what the cores can hide"))),
    )

    def on_host(self, host: HostFeatures) -> Finding | None:
        """By the wait for batches, and by the cores that workers hold while the model computes."""
        loader = host.measurement.loader or LoaderMeasurement()
        wait = batch_wait(host, loader)
        headroom = host.step_s / wait.free_s
        if headroom < SEEN:
            return None
        samples, role = making_batches(host, loader)
        cause = cause_of_wait(host, loader, samples)
        total = host.worker_total if role == "worker" else host.blame.total
        return self.finding(
            cause=cause,
            culprit=_culprit(host, cause, samples, total, role),
            share=host.share(DATA_WAIT.name),
            phases=self.phases,
            headroom=headroom,
            # Without workers the wait is the time of the loader itself, as timers show it.
            headroom_known_by="predicted" if loader.service_s and (loader.workers or wait.contended) else "estimated",
            evidence=_evidence(host, loader, wait, cause),
            advice=_advice(host, loader, cause),
        )

    def on_device(self, device: TraceFeatures) -> Finding | None:
        """By the device's idle time while the host waits in a loader."""
        shares, metrics = device.shares, device.metrics
        idle = shares["idle_loader"]
        if idle < LOADER_SHARE:
            return None
        row = metrics.loader_row
        name = metrics.timeline.names[metrics.timeline.host.name[row]] if row >= 0 else ""
        single = "SingleProcess" in name
        workers = "load ahead in workers (num_workers > 0)"
        return self.finding(
            summary=f"the device is idle {percent(idle)} of a step because the next batch is late",
            cause="workers" if single else None,
            culprit=metrics.blame.culprit(row, shares["loader"], device.where),
            share=idle,
            headroom=device.gain("data=0"),
            headroom_known_by="predicted",
            confidence=device.confidence(idle),
            evidence=[
                f"{of_step(shares['loader'], shares['loader'] * device.step_s)}, the main loop "
                f"waits for its next batch; for {percent(idle)} the device is idle meanwhile",
                *(["batches are made in the main process: nothing is loaded ahead"] if single else []),
            ],
            advice=[
                workers if single else "make batches faster: more workers, cheaper transforms",
                "unstall run names the slow stage of the loader: reading, transform or collate",
            ],
        )

    def takes_caches(self, host: HostFeatures) -> bool:
        """Where the main thread makes the batches: workers have caches of their own."""
        loader = host.measurement.loader
        return loader is None or not loader.workers

    def ceiling_range(self, finding: Finding, host: HostFeatures) -> tuple[float, float]:
        """Without the wait alone, and with the model undisturbed: quicker than its quickest steps beside the workers.

        Where loader and model collide, a share of the wait says little: the ceiling may be several times the estimate.
        Where other programs hold more of the cores than this one, they may be what disturbs the model.
        """
        wait = batch_wait(host, host.measurement.loader or LoaderMeasurement())
        if not wait.contended:
            return finding.headroom, finding.headroom
        by_others = host.measurement.other_cores > host.used_cores
        slowest_s = wait.body_s if by_others else min(wait.body_s, UNDISTURBED * wait.free_s)
        return min(finding.headroom, host.step_s / slowest_s), host.step_s * UNDISTURBED / wait.free_s

    def remedy(self, finding: Finding, features: Features) -> UsualRemedy | None:
        """More workers, where there are cores for them or they need none: as far as the cores can hide the loading."""
        host = features.host
        loader = host.measurement.loader if host is not None else None
        if host is None or loader is None or not loader.service_s:
            return None
        workers = _more_workers(host, loader, finding.cause)
        if workers is None:
            return None
        rest_s = host.step_s - host.phase_s(DATA_WAIT.name)
        batches = loader.batches_per_step
        computing_s = (host.measurement.main_cpu_s + loader.service_cpu_s * batches) / host.measurement.cores
        ahead_s = max(rest_s, loader.service_s * batches / workers, computing_s)
        remains = min(1.0, (ahead_s - rest_s) / max(host.phase_s(DATA_WAIT.name), 1e-12))
        why = "the batch's own time over the workers, or all core-seconds over the cores"
        return UsualRemedy(
            f"num_workers={workers}", Range(max(0.0, remains - READ_AHEAD), remains, remains + READ_AHEAD, why)
        )

    def sentence(self, finding: Finding, use: Utilization) -> str:
        """Whether the step waits, or the model starves, and for what."""
        culprit = finding.culprit
        if culprit is None:
            return f"{part(finding)} waits for the next batch"
        name = name_of(culprit)
        if culprit.process != "worker":
            return f"{part(finding)} goes into preparing the next batch in {name}"
        # Waiting must be at least half of what the headroom promises; else the workers cost more by taking the cores.
        if (finding.share or 0.0) >= MOST * (1 - 1 / max(finding.headroom, 1)):
            return f"{part(finding)} waits for {name} in the loader workers"
        delay = use.run_delay
        starved = known(delay) and delay >= NOTABLE_DELAY
        why = f", which waits {percent(delay)} of each step for one" if starved and delay is not None else ""
        return f"{name} in the loader workers takes the cores from the model{why}"


def _culprit(host: HostFeatures, cause: str, samples: list[Placed], total: int, role: ProcessRole) -> Culprit | None:
    if cause == "workers":
        site = host.busiest_site(host.blame.in_phase(DATA_WAIT.name), EPOCH)
        return line_culprit(site, min(1.0, host.share(DATA_WAIT.name))) if site is not None else None
    if cause == "collate":
        name = (host.measurement.loader.collate if host.measurement.loader else "").rpartition(".")[2]
        inside = [placed for placed in samples if any(short(frame.function) == name for frame, _ in placed.program)]
        return culprit(inside or samples, total, role, host.blame.loops)
    below_loop = [placed for placed in samples if placed.program]
    return culprit(below_loop, total, role, host.blame.loops)


def _evidence(host: HostFeatures, loader: LoaderMeasurement, wait: BatchWait, cause: str) -> list[str]:
    lines = [f"{of_step(wait.wait_s / host.step_s, wait.wait_s)}, waits for the next batch"]
    if loader.service_s:
        several = f"{loader.workers} workers need each"
        alone = "a worker needs" if loader.workers else "the main process needs"
        lines.append(
            f"{several if loader.workers > 1 else alone} {seconds(loader.service_s)} to make a batch, "
            f"{seconds(loader.service_cpu_s)} of it on a core"
        )
    if wait.contended:
        lines.append(_contention(host))
    return lines + _cause_evidence(host, loader, cause)


def _contention(host: HostFeatures) -> str:
    """How many cores loader and model need together, and what the main thread loses by it."""
    measured = host.measurement
    workers = measured.worker_cpu_s / measured.step.mean
    line = f"loader and model need {host.used_cores:.1f} of {measured.cores:g} cores, the workers {workers:.1f}"
    if measured.other_cores > host.used_cores:
        line = f"other processes take {measured.other_cores:.1f} of the {measured.cores:g} cores"
    elif not workers:
        line = f"threads that NumPy and torch keep take the {measured.cores:g} cores from each other"
    if not measured.run_delay:
        return line
    return f"{line}; the main thread waits for a core {percent(measured.run_delay)} of the time"


def _cause_evidence(host: HostFeatures, loader: LoaderMeasurement, cause: str) -> list[str]:
    """What shows the cause, apart from the wait itself."""

    def of_batch(part_s: float) -> str:
        return f"{percent(part_s / loader.service_s)} of making a batch is"

    lines = []
    if cause == "workers":
        start = seconds(loader.start_s)
        lines.append(f"starting workers and their first batch takes {start} a step, {loader.epochs} epochs")
    if cause == "sampler":
        beside = ": loader workers get no indices before" if loader.workers else ""
        lines.append(f"most of the wait is for the sampler, which runs in the main process{beside}")
    if cause == "network" and loader.service_network_s:
        lines.append(f"{of_batch(loader.service_network_s)} blocked in network I/O")
    if cause == "collate":
        lines.append(f"{of_batch(loader.collate_s)} in collate_fn")
    if cause == "storage" and loader.service_blocked_s > NOTABLE_BLOCKED * loader.service_s > 0:
        lines.append(f"{of_batch(loader.service_blocked_s)} blocked, off the cores")
    if cause == "storage" and host.measurement.read_chars:
        lines.append(f"{host.measurement.read_chars / 1e6:.1f} MB a step are read from files")
    return lines


def _advice(host: HostFeatures, loader: LoaderMeasurement, cause: str) -> list[str]:
    more = _worker_advice(host, loader, cause) if host.measurement.loader else ""
    return [_ADVICE[cause], *([more] if more else [])]


def _worker_advice(host: HostFeatures, loader: LoaderMeasurement, cause: str) -> str:
    """Whether more workers help, and how many; empty where they have nothing to do with the cause."""
    workers = _more_workers(host, loader, cause)
    if workers is None:
        full = loader.workers and cause not in ("sampler", "workers", "threads")
        return "more workers would not help: all cores are busy" if full else ""
    if _mostly_waits(host, loader, cause):
        return f"num_workers={workers}: the workers mostly wait, so they need no more cores"
    meanwhile = "" if loader.workers else " meanwhile"
    return f"num_workers={workers}: {host.spare_cores:.1f} of {host.measurement.cores:g} cores are idle{meanwhile}"


def _more_workers(host: HostFeatures, loader: LoaderMeasurement, cause: str | None) -> int | None:
    """How many workers would load faster; None where more of them do not help."""
    workers, spare = loader.workers, host.spare_cores
    if cause in ("sampler", "workers", "threads"):
        return None
    if _mostly_waits(host, loader, cause):
        return max(4, 2 * workers)
    if spare > SPARE_CORE and not (workers == 0 and loader.iterable):
        return workers + max(1, round(spare))
    return None


def _mostly_waits(host: HostFeatures, loader: LoaderMeasurement, cause: str | None) -> bool:
    return cause in ("network", "storage") and blocked_share(host, loader) > MOST


PATTERN = InputBound()

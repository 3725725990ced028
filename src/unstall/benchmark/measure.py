"""From recordings and observations to one Measurement: the last step of Benchmark, before any diagnosis."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unstall.benchmark import acting, early_looks, generation, ranks, steadystate
from unstall.benchmark import loader as loader_facts
from unstall.benchmark import model as model_facts
from unstall.benchmark.between import between
from unstall.benchmark.boundaries import earlier_training, other_loops
from unstall.benchmark.callbacks import callback_times
from unstall.benchmark.compiled import compiled_frames, compiled_in_steps
from unstall.benchmark.environment import usable_cores, usable_memory_bytes
from unstall.benchmark.evaluations import evaluated
from unstall.benchmark.frozen_parts import frozen_part
from unstall.benchmark.gpu_states import gpu_states
from unstall.benchmark.growing_objects import growing_objects
from unstall.benchmark.phases import mean_phases, unhindered
from unstall.benchmark.reader import ProcessRecording
from unstall.benchmark.resources import cpu_between, growth, other_cores, unseen_cpu_between
from unstall.benchmark.slowing import slowing
from unstall.benchmark.stacks import merge, with_main_threads
from unstall.benchmark.steps import Loop, driving_threads, find_loop, main_spans
from unstall.benchmark.thresholds import FEWEST_IN_LOOP, MEMORY_POINTS
from unstall.benchmark.zero_products import zero_products
from unstall.child.seams.callbacks import CALLBACK
from unstall.child.seams.collector import COLLECTION
from unstall.child.seams.loader import EPOCH
from unstall.child.user_files import is_program_file
from unstall.records.measurements import (
    Measurement,
    MemoryMeasurement,
    SeamSite,
)
from unstall.records.observations import Frame, Observation, ResourcePoint, StackSample, StackWindow
from unstall.records.report import SpanTime, Startup
from unstall.records.run import StepTime
from unstall.records.vocabulary import TRAINING, is_seam

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LoopMeasurement:
    """A loop that was found and measured, and where it lies in the run."""

    measurement: Measurement
    loop: Loop
    chosen: Bools
    process: ProcessRecording
    processes: list[ProcessRecording]


def measure(
    processes: Sequence[ProcessRecording],
    observation: Observation,
    *,
    wanted: int | None = None,
    peak_flops: float | None = None,
) -> LoopMeasurement | None:
    """Measure the main loop of a run; None when no process of it has one."""
    loops = {process.pid: find_loop(process) for process in processes}
    looping = [process for process in processes if loops[process.pid] is not None]
    looping = [process for process in looping if not ranks.is_helper(process, looping, loops)]
    if not looping:
        return None
    driving = {process.pid: threads for process in looping if (threads := driving_threads(process))}
    observation = with_main_threads(observation, driving)
    main = ranks.find_main(looping, loops)
    loop = loops[main.pid]
    assert loop is not None
    the_loader = loader_facts.measure(main, processes, loop)
    others = other_loops(main, main_spans(main)) if loop.kind in TRAINING else []
    prefetched = the_loader.workers * (the_loader.prefetch_factor or 2) if the_loader else 0
    chosen, warmup, disturbed = steadystate.measured(
        loop.starts,
        loop.ends,
        [*observation.disturbed, *_looks(main), *others],
        [*observation.sampled, *_own_samplings(main)],
        prefetched=prefetched,
        wanted=wanted,
    )
    if not chosen.any():
        return None
    times = _Times(loop, chosen)
    world = ranks.of_world(main, looping, loops)
    held_up = {process.pid: [*observation.disturbed, *_looks(process)] for process in world}
    sampled = {process.pid: [*observation.sampled, *_own_samplings(process)] for process in world}
    the_ranks = ranks.measure(world, loops, held_up, sampled, processes)
    rank_pids = frozenset(rank.pid for rank in the_ranks) or frozenset({main.pid})
    pids = {point.pid for point in observation.points}
    durations = loop.durations[chosen]
    regular = loop.durations[chosen & ~loop.at_boundary]
    sites = _sites(main, loop)
    generated = generation.measure(main, loop, chosen)
    looked_at = early_looks.of_loop(main, loop)
    the_model = model_facts.measure(
        looked_at, loop, chosen, peak_flops=peak_flops, threads=_threads(main, processes), generated=generated
    )
    operators, other_operators = model_facts.operators(looked_at, loop, chosen, the_model.device)
    measurement = Measurement(
        kind=loop.kind,
        steps=int(chosen.sum()),
        warmup=warmup,
        total_steps=len(loop),
        step=_step_time(durations, regular),
        phases=mean_phases(loop, chosen),
        cores=usable_cores(),
        main_pid=main.pid,
        regular_s=float(regular.mean()) if len(regular) else float(durations.mean()),
        unhindered_s=unhindered(loop, chosen & ~loop.at_boundary),
        between=between(loop, chosen, sites),
        worker_pids=frozenset().union(*(ranks.workers(pid, processes) for pid in rank_pids)),
        rank_pids=rank_pids,
        main_cpu_s=times.per_step(lambda t0, t1: cpu_between(observation.points, {main.pid}, t0, t1)),
        main_kernel_s=times.per_step(lambda t0, t1: growth(observation.points, {main.pid}, t0, t1, "kernel_s")),
        page_faults=times.per_step(lambda t0, t1: growth(observation.points, {main.pid}, t0, t1, "page_faults")),
        refetch_s=main.refetch_s,
        worker_cpu_s=times.per_step(
            lambda t0, t1: (
                cpu_between(observation.points, pids - rank_pids - {_root(observation, main)}, t0, t1)
                + unseen_cpu_between(observation.machine, t0, t1)
            )
        ),
        run_delay=_run_delay(times, observation, main),
        team_delay_s=times.per_step(lambda t0, t1: growth(observation.points, {main.pid}, t0, t1, "team_delay_s")),
        other_cores=times.mean(lambda t0, t1: other_cores(observation.machine, observation.points, t0, t1)),
        computing=ranks.computing(main, loop, looping),
        loader=the_loader,
        model=the_model,
        generation=generated,
        modules=model_facts.modules(looked_at),
        operators=operators,
        other_operators=other_operators,
        recomputation=model_facts.recomputation(looked_at, loop, chosen, the_model.device),
        zero_products=zero_products(looked_at, the_model.device),
        frozen=frozen_part(looked_at),
        world_size=main.identity.world_size if main.identity else 1,
        ranks=the_ranks,
        unseen_ranks=ranks.unseen(main, the_ranks),
        library_calls=_library_calls(main, loop, chosen),
        callbacks=callback_times(main, loop, chosen, observation.ended - observation.began),
        compiled=compiled_in_steps(main, loop, chosen),
        compiled_frames=compiled_frames(main.facts.get("compiled", [])),
        gc_s=_seam_seconds(main, loop, chosen, COLLECTION.event),
        memory=_memory(main, loop, chosen, observation),
        windows_before=[window for window in observation.before_loop if window.middle <= float(loop.starts[0])],
        after_loop=_sampled(observation.windows, since=float(loop.ends[-1])),
        samples=_in_loop(observation, float(loop.ends[-1])) or _own_samples(looping),
        pause_samples=_sampled(observation.pauses, until=float(loop.ends[-1])),
        sites=sites,
        plugins=main.plugins,
        envs=acting.environments(main),
        observations=acting.observations(main),
        disk_read=times.per_step(lambda t0, t1: _gain(observation.points, t0, t1, lambda point: point.read_bytes)),
        read_chars=times.per_step(lambda t0, t1: _gain(observation.points, t0, t1, lambda point: point.read_chars)),
        spread=_spread(durations),
        slowing=slowing(loop, chosen, observation, main.pid),
        sampling_failure=observation.sampling_failure,
        nan_loss="nan" in main.facts,
        disturbed=disturbed,
        gpu=_gpu(loop, observation),
        gpu_states=gpu_states(observation.machine, float(loop.starts[0]), float(loop.ends[-1])),
        spans=_user_spans(processes),
        startup=_startup(loop, chosen, warmup, observation, main),
        began=observation.began,
        run_s=None if observation.stopped else observation.ended - observation.began,
    )
    return LoopMeasurement(measurement, loop, chosen, main, list(processes))


class _Times:
    """The stretches of time that the measured steps cover."""

    def __init__(self, loop: Loop, chosen: Bools):
        self.steps = int(chosen.sum())
        edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(int), [0]])))
        self.stretches = [
            (float(loop.starts[begin]), float(loop.ends[end - 1])) for begin, end in zip(edges[::2], edges[1::2])
        ][:400]
        self.seconds = sum(end - begin for begin, end in self.stretches)
        self.scale = float(loop.durations[chosen].sum()) / self.seconds if self.seconds else 1.0

    def per_step(self, between: Callable[[float, float], float]) -> float:
        """A function of (start, end) that counts something: its sum, per step."""
        return sum(between(begin, end) for begin, end in self.stretches) * self.scale / self.steps

    def mean(self, between: Callable[[float, float], float]) -> float:
        """A function of (start, end) that gives a level: its mean over time."""
        if not self.seconds:
            return 0.0
        return sum(between(begin, end) * (end - begin) for begin, end in self.stretches) / self.seconds


def _threads(main: ProcessRecording, processes: Sequence[ProcessRecording]) -> int:
    """That torch computes with; a forked process says nothing of its own, and begins with what its parent has."""
    by_pid = {process.pid: process for process in processes}
    process: ProcessRecording | None = main
    while process is not None:
        fact = process.first("torch")
        if fact is not None:
            return int(fact.get("threads", 0))
        process = by_pid.get(process.parent)
    return 0


def _root(observation: Observation, main: ProcessRecording) -> int:
    """The launcher of the ranks (torchrun), which is no worker; the main process itself without one."""
    return observation.points[0].pid if observation.points else main.pid


def _looks(main: ProcessRecording) -> list[tuple[float, float]]:
    """When operators were counted, the GPU was profiled, or what the program keeps was looked through."""
    facts = main.facts.get("window", [])
    return [(fact["began"], fact["ended"]) for fact in facts if fact.get("what") in ("flops", "gpu", "probe")]


def _sampled(windows: Sequence[StackWindow], since: float = -math.inf, until: float = math.inf) -> list[StackSample]:
    """The stacks of the windows that lie in this stretch of time."""
    return merge(sample for window in windows if since < window.middle <= until for sample in window.samples)


def _in_loop(observation: Observation, end: float) -> Sequence[StackSample]:
    """All stacks but those after the last step; all of them where the loop was too short for others."""
    if all(window.middle <= end for window in observation.windows):
        return observation.samples
    before = _sampled(observation.windows, until=end)
    return before if sum(sample.count for sample in before) >= FEWEST_IN_LOOP else observation.samples


def _own_samplings(main: ProcessRecording) -> list[tuple[float, float]]:
    """When the watcher itself sampled stacks."""
    return [(fact["began"], fact["ended"]) for fact in main.facts.get("samples", [])]


def _own_samples(processes: Sequence[ProcessRecording]) -> list[StackSample]:
    """Stacks that the processes sampled themselves, where py-spy might not attach."""
    return [
        StackSample(
            process.pid, "MainThread", tuple(Frame(function, file, line) for function, file, line in stack), count
        )
        for process in processes
        for fact in process.facts.get("samples", [])
        for stack, count in fact["stacks"]
    ]


def _step_time(durations: npt.NDArray[np.float64], regular: npt.NDArray[np.float64]) -> StepTime:
    shown = regular if len(regular) else durations
    return StepTime(float(durations.mean()), float(np.percentile(shown, 50)), float(np.percentile(shown, 95)))


def _run_delay(times: _Times, observation: Observation, main: ProcessRecording) -> float | None:
    if not any(point.run_delay_s for point in observation.points) or not times.seconds:
        return None
    waited = sum(growth(observation.points, {main.pid}, begin, end, "run_delay_s") for begin, end in times.stretches)
    return min(1.0, waited / times.seconds)


def _gain(points: Sequence[ResourcePoint], t0: float, t1: float, value: Any) -> float:
    """Growth of a counter over the whole tree between two times, whole looks only."""
    first: dict[int, float] = {}
    last: dict[int, float] = {}
    looks = sorted({point.t for point in points})
    begin = max((t for t in looks if t <= t0), default=t0)
    end = min((t for t in looks if t >= t1), default=t1)
    for point in points:
        if begin <= point.t <= end:
            first.setdefault(point.pid, value(point))
            last[point.pid] = value(point)
    covered = max(end - begin, 1e-9)
    return sum(last[pid] - first[pid] for pid in last) * min(1.0, (t1 - t0) / covered)


def _spread(durations: npt.NDArray[np.float64]) -> float:
    """Relative standard error of the mean, from the means of ten blocks at most: steps are autocorrelated."""
    if len(durations) < 2:
        return 1.0
    blocks = np.array([block.mean() for block in np.array_split(durations, min(10, len(durations)))])
    return float(blocks.std(ddof=1) / np.sqrt(len(blocks)) / max(durations.mean(), 1e-12))


def _library_calls(main: ProcessRecording, loop: Loop, chosen: Bools) -> dict[str, float]:
    names = [name for name in main.ids if CALLBACK.covers(name)]
    times = {CALLBACK.member(name): _seam_seconds(main, loop, chosen, name) for name in names}
    return {name: seconds for name, seconds in times.items() if seconds > 0}


def _seam_seconds(main: ProcessRecording, loop: Loop, chosen: Bools, name: str) -> float:
    spans = main_spans(main)
    spans = spans[spans["name"] == main.ids.get(name, -1)]
    index = loop.step_of(spans)
    inside = index >= 0
    return float((spans["dur"][inside] / 1e9 * chosen[index[inside]]).sum() / chosen.sum())


def _memory(main: ProcessRecording, loop: Loop, chosen: Bools, observation: Observation) -> MemoryMeasurement:
    own = [point for point in observation.points if point.pid == main.pid]
    by_time: dict[float, int] = defaultdict(int)
    for point in observation.points:
        by_time[point.t] += point.rss_bytes
    begin, end = loop.starts[np.argmax(chosen)], loop.ends[-1]
    # A GPU's profiler may take seconds to begin, and keeps what it records in memory.
    ours = _looks(main)

    def by_step(series: list[tuple[float, int]]) -> list[tuple[float, float]]:
        inside = [
            (t, value)
            for t, value in series
            if begin <= t <= end and not any(began <= t <= ended for began, ended in ours)
        ]
        inside = inside[:: max(1, len(inside) // MEMORY_POINTS)]
        steps = np.interp([t for t, _ in inside], loop.ends, np.arange(len(loop.ends)))
        return [(float(step), float(value)) for step, (_, value) in zip(steps, inside)]

    probes = main.facts.get("probe", [])
    steps_of = [int(np.searchsorted(loop.ends, fact["t"])) for fact in probes]
    looks = [(step, fact["found"]) for step, fact in zip(steps_of, probes)]
    free = [(float(step), float(fact["free"])) for step, fact in zip(steps_of, probes) if fact.get("free") is not None]
    loop_site = looks[-1][1].get("loop", {}) if looks else {}
    device = [(look.t, sum(look.gpu_memory_bytes)) for look in observation.machine if look.gpu_memory_bytes]
    return MemoryMeasurement(
        rss_by_step=by_step([(point.t, point.rss_bytes) for point in own]),
        mapped_by_step=by_step([(point.t, point.mapped_bytes) for point in own if point.mapped_bytes]),
        device_by_step=by_step(device),
        free_by_step=free,
        rss_peak=max(by_time.values(), default=None),
        device_peak=max((value for _, value in device), default=None),
        growing=growing_objects(looks),
        subnormal=probes[-1].get("subnormal", 0.0) if probes else 0.0,
        loop=(loop_site.get("file", ""), loop_site.get("function", "")),
        available=usable_memory_bytes(),
    )


def _sites(main: ProcessRecording, loop: Loop) -> list[SeamSite]:
    """Where the program calls seams; last what it called in another training, before the loop."""
    sites: list[SeamSite] = []
    elsewhere: list[SeamSite] = []
    spans = main_spans(main)
    environments = evaluated(main, spans)
    trained_before = earlier_training(main, spans, float(loop.starts[0]))
    for fact in main.facts.get("site", []):
        own = [(file, function, line) for file, function, line, _ in fact["stack"] if is_program_file(file)]
        if own:
            file, function, line = own[0]
            grad, evaluates = bool(fact.get("grad", True)), fact.get("subject") in environments
            site = SeamSite(fact["name"], file, function, line, tuple(own[1:]), grad, evaluates)
            (elsewhere if fact.get("t", trained_before) < trained_before else sites).append(site)
    return sites + elsewhere


def _gpu(loop: Loop, observation: Observation) -> list[float] | None:
    """Utilization of each device while the loop ran; None where none was seen."""
    begin, end = float(loop.starts[0]), float(loop.ends[-1])
    looks = [look.gpu_utilization for look in observation.machine if begin <= look.t <= end]
    return [sum(device) / len(device) for device in zip(*looks)] or None


def _user_spans(processes: Sequence[ProcessRecording]) -> list[SpanTime]:
    totals: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    for process in processes:
        names, counts = np.unique(process.spans["name"], return_counts=True)
        for number, count in zip(names, counts):
            name = process.names.get(int(number), "?")
            if not is_seam(name):
                totals[name][0] += int(count)
                totals[name][1] += float(process.spans["dur"][process.spans["name"] == number].sum()) / 1e9
    spans = [
        SpanTime(name=name, count=int(count), total_s=seconds, mean_s=seconds / count)
        for name, (count, seconds) in totals.items()
    ]
    return sorted(spans, key=lambda span: -span.total_s)


def _startup(loop: Loop, chosen: Bools, warmup: int, observation: Observation, main: ProcessRecording) -> Startup:
    epochs = main.named(EPOCH.event, main_only=False)
    first = float(loop.starts[0])
    warm = loop.durations[:warmup]
    gaps = loop.durations[chosen & loop.at_boundary]
    typical = float(np.median(loop.durations[chosen]))
    return Startup(
        before_first_batch_s=max(0.0, first - observation.began),
        worker_start_s=float(epochs["dur"].sum() / 1e9),
        warmup_s=float(warm.sum()),
        epoch_gaps_s=float(np.clip(gaps - typical, 0, None).sum()),
        after_last_step_s=max(0.0, observation.ended - float(loop.ends[-1])),
    )

"""What a changed pipeline would do: the step time with its interval, what it is busy with, what limits it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from unstall.model import thresholds
from unstall.model.changes import AS_RECORDED, Changes, apply
from unstall.model.function_shares import DATA
from unstall.model.pipeline_model import Pipeline
from unstall.model.simulate import SimulatedTimeline, simulate
from unstall.records.what_if import WhatIf


def predict(pipeline: Pipeline, changes: Changes = AS_RECORDED, *, seed: int = 0) -> WhatIf:
    """The step time of a recorded program after changes, as a multiple of what was recorded.

    The simulation of the program as recorded takes out what it gets wrong in both. Raises
    :class:`~unstall.model.changes.ChangeError` for a change that the program has no place for.
    """
    changed = apply(pipeline, changes)
    before = _recorded_s(pipeline, seed)
    after, timeline = _step_s(changed, seed)
    recorded_s, ratio = pipeline.measured_s, after / before if before else 1.0
    miss = abs(math.log(recorded_s / before)) if before and recorded_s else 0.0
    low, high = _interval(pipeline, changes, ratio, miss, seed)
    utilisation = _utilisation(changed, timeline)
    return WhatIf(
        changes=changes.describe(),
        step_s=recorded_s * ratio,
        low=recorded_s * low,
        high=recorded_s * high,
        speedup=_times_as_fast(recorded_s, recorded_s * ratio),
        speedup_low=_times_as_fast(recorded_s, recorded_s * high),
        speedup_high=_times_as_fast(recorded_s, recorded_s * low),
        bottleneck=_bottleneck(changed, utilisation),
        utilisation=utilisation,
        limit_s=max(server_times(changed).values()) * (recorded_s / before if before else 1.0),
    )


def _times_as_fast(before_s: float, after_s: float) -> float:
    return before_s / after_s if after_s else math.inf


def elasticities(pipeline: Pipeline, changes: Changes = AS_RECORDED, *, seed: int = 0) -> dict[str, float]:
    """How much of a per cent the step grows by if a component takes a per cent longer.

    A step time is homogeneous in the times of all its components, so the elasticities sum to 1 (Euler); here as
    central differences with the same draws on both sides: chance is in neither, and of a corner, where a component
    just begins to be waited for, it is half of either slope. One-sided, a corner would count for all that meet there.
    """
    pipeline = apply(pipeline, changes)
    base, _ = _step_s(pipeline, seed)

    def nudged(scaled: Callable[[float], Pipeline]) -> float:
        longer, shorter = (_step_s(scaled(factor), seed)[0] for factor in (1 + thresholds.NUDGE, 1 - thresholds.NUDGE))
        return (longer - shorter) / (2 * thresholds.NUDGE * base)

    slopes = {
        name: nudged(functools.partial(pipeline.scale_phase, name))
        for name in pipeline.phases
        if pipeline.phase_s(name) > 0
    }
    if pipeline.has_loader:
        slopes[DATA] = nudged(functools.partial(_data_scaled, pipeline))
    if pipeline.device_s:
        slopes["device"] = nudged(lambda factor: replace(pipeline, device_s=pipeline.device_s * factor))
    layout = pipeline.layout
    if layout.epoch and (layout.epoch_open_s or layout.epoch_close_s):
        slopes["epoch"] = nudged(functools.partial(_epoch_scaled, pipeline))
    return {name: value for name, value in slopes.items() if abs(value) > 1e-6}


def _data_scaled(pipeline: Pipeline, factor: float) -> Pipeline:
    """With all that is done to make a batch, and to get it to the loop, taking ``factor`` times as long."""
    scaled = pipeline.scale_service(factor)
    return replace(scaled, ship_s=pipeline.ship_s * factor, take_s=pipeline.take_s * factor)


def _epoch_scaled(pipeline: Pipeline, factor: float) -> Pipeline:
    """With the opening and the closing of an epoch taking ``factor`` times as long."""
    layout = pipeline.layout
    longer = replace(layout, epoch_open_s=layout.epoch_open_s * factor, epoch_close_s=layout.epoch_close_s * factor)
    return replace(pipeline, layout=longer)


@functools.lru_cache(maxsize=4)
def _recorded_s(pipeline: Pipeline, seed: int) -> float:
    """Simulated seconds a step as recorded: the same for all that is asked of a pipeline."""
    return _step_s(pipeline, seed)[0]


def _step_s(pipeline: Pipeline, seed: int) -> tuple[float, SimulatedTimeline]:
    """Simulated seconds a step, epochs included."""
    layout = pipeline.layout
    in_flight = layout.workers * layout.prefetch
    skip = min(max(2 * in_flight, 20), thresholds.MOST_IN_FLIGHT)
    batches = thresholds.BATCHES + skip
    if layout.epoch and layout.epoch * 4 <= batches:
        batches = batches // layout.epoch * layout.epoch
        timeline = simulate(pipeline.draw(batches, seed), layout)
        total_s = timeline.duration_s + layout.epoch_close_s
        return total_s / batches * pipeline.batches_per_step, timeline
    timeline = simulate(pipeline.draw(batches, seed), replace(layout, epoch=0))
    gap = 0.0
    if layout.epoch:
        first = pipeline.service_s if layout.workers else 0.0
        gap = (layout.epoch_open_s + layout.epoch_close_s + first) / layout.epoch
    return (timeline.batch_s(skip) + gap) * pipeline.batches_per_step, timeline


def _interval(pipeline: Pipeline, changes: Changes, ratio: float, miss: float, seed: int) -> tuple[float, float]:
    """Of the step's ratio: the model's own error around it, and what a recording cannot tell about it.

    ``miss``: what the simulation misses the recorded step by, in logarithms.
    """
    if changes == AS_RECORDED:
        error = pipeline.spread * 1.96
        return math.exp(-error), math.exp(error)
    error = math.hypot(usual_error(ratio, scaled=bool(changes.scales)), miss, 1.96 * pipeline.spread)
    ratios = [ratio, *_other_readings(pipeline, changes, seed)]
    return min(ratios) * math.exp(-error), max(ratios) * math.exp(error)


def usual_error(ratio: float, *, scaled: bool) -> float:
    """What nine of ten predictions miss the measured step by at most, in logarithms.

    Args:
        ratio: the predicted step over the recorded one, or the other way round.
        scaled: whether a component takes another time; else settings alone are others.
    """
    least, of_change = thresholds.ERROR, thresholds.ERROR_OF_CHANGE
    if scaled:
        least, of_change = thresholds.ERROR_SCALED, thresholds.ERROR_OF_SCALED
    return least + of_change * abs(math.log(max(ratio, 1e-3)))


def _other_readings(pipeline: Pipeline, changes: Changes, seed: int) -> list[float]:
    """Ratios of the step under other readings of the same recording."""
    readings = []
    before = _recorded_s(pipeline, seed)
    for contention in (0.0, 2 * pipeline.layout.contention) if pipeline.layout.contention else ():
        other = pipeline.with_contention(contention)
        readings.append(_step_s(apply(other, changes), seed)[0] / _step_s(other, seed)[0])
    if changes.threads is not None and changes.threads != pipeline.threads and not pipeline.on_device:
        # Threads of a team that wait for each other by spinning look busy: the mathematics may not be parallel at all.
        others = apply(pipeline, replace(changes, threads=None))
        narrow = replace(others, layout=replace(others.layout, width=1.0)) if changes.threads == 1 else others
        readings.append(_step_s(narrow, seed)[0] / before)
    if changes.aside:
        # A callback in Python holds the interpreter's lock: what it computes the main thread cannot compute meanwhile.
        sync = apply(pipeline, replace(changes, aside=frozenset()))
        columns = [name in changes.aside for name in sync.phases]
        wait = sync.wait.copy()
        wait[:, columns] = 0
        readings.append(_step_s(replace(sync, wait=wait), seed)[0] / before)
    return readings


def _utilisation(pipeline: Pipeline, timeline: SimulatedTimeline) -> dict[str, float]:
    layout, total = pipeline.layout, timeline.duration_s
    if not total:
        return {}
    shares = {
        "main thread": 1 - timeline.waited_s / total if layout.workers else 1.0,
        "cores": min(1.0, timeline.cores_busy_s / total / layout.cores + layout.background / layout.cores),
    }
    if layout.workers:
        shares["workers"] = timeline.workers_busy_s / total / layout.workers
    if pipeline.device_s:
        shares["device"] = min(1.0, timeline.device_busy_s / total)
    if pipeline.aside:
        shares["thread aside"] = timeline.aside_busy_s / total
    return shares


def _bottleneck(pipeline: Pipeline, utilisation: Mapping[str, float]) -> str:
    """What the step waits for: the cores where they are full, else the largest part of the busiest server."""
    if pipeline.layout.workers and utilisation.get("cores", 0) > thresholds.FULL:
        return "cores"
    busiest = max(
        (name for name in utilisation if name != "cores"), key=lambda name: utilisation[name], default="nothing"
    )
    if busiest == "workers":
        return "loader workers"
    if busiest != "main thread":
        return busiest
    times = {name: pipeline.phase_s(name) for name in pipeline.phases if name not in pipeline.aside}
    if pipeline.makes_batches:
        times[DATA] = pipeline.making_s
    if pipeline.layout.syncs and pipeline.device_s:
        times["device"] = pipeline.device_s
    return f"main thread: {max(times, key=lambda name: times[name])}" if times else busiest


def server_times(pipeline: Pipeline) -> dict[str, float]:
    """Seconds that each server needs for a step's work if nothing else holds it up, by its name.

    The step takes the largest of them where times do not vary, epochs do not end and nothing else contends: with
    W workers, s to make a batch, u the main thread's part, g the device's, T = max(s/W, u, g), with u+g for u and g
    where the step waits for the device, s+u (+g) without workers, and never less than the core-seconds over the cores.
    """
    layout, batches = pipeline.layout, pipeline.batches_per_step
    work = pipeline.draw(max(len(pipeline.compute), len(pipeline.service), 64))
    making = float((work.service_cpu + work.service_wait).mean()) * batches if pipeline.has_loader else 0.0
    main = float((work.take_cpu + work.body_cpu + work.body_wide + work.body_wait).mean()) * batches
    device = float(work.device.mean()) * batches
    aside = float((work.aside_cpu + work.aside_wait).mean()) * batches
    main += device if layout.syncs and pipeline.on_device else 0.0
    servers = {"main thread": main, "device": device, "thread aside": aside}
    if layout.workers:
        servers["workers"] = making / layout.workers
    else:
        servers["main thread"] += making
    core_s = work.service_cpu + work.take_cpu + work.body_cpu + work.aside_cpu + work.body_wide * layout.width
    servers["cores"] = float(core_s.mean()) * batches / layout.cores
    return servers

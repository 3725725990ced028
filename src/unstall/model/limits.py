"""What a step takes at least, without chance: the slowest server of the pipeline, and the law of the cores."""

from __future__ import annotations

from unstall.model.pipeline_model import Pipeline


def server_times(pipeline: Pipeline) -> dict[str, float]:
    """Seconds that each server needs for a step's work if nothing else holds it up, by its name.

    The step takes the largest of them where times do not vary, epochs do not end and nothing else contends: with
    W workers, F prefetched batches each, s to make a batch, m to pin it, u the main thread's part, g the device's,
    T = max(s/W, (s+m)/(WF), m, u, g), with u+g for u and g where the step waits for the device, s+u (+g) without
    workers, and never less than the core-seconds over the cores.
    """
    layout, batches = pipeline.layout, pipeline.batches_per_step
    work = pipeline.draw(max(len(pipeline.compute), len(pipeline.service), 64))
    made = float((work.service_cpu + work.service_wait).mean()) * batches if pipeline.has_loader else 0.0
    main = float((work.take_cpu + work.body_cpu + work.body_wide + work.body_wait).mean()) * batches
    device = float(work.device.mean()) * batches
    pin = float(work.pin_cpu.mean()) * batches if layout.pins else 0.0
    aside = float((work.aside_cpu + work.aside_wait).mean()) * batches
    main += device if layout.syncs and pipeline.on_device else 0.0
    servers = {"main thread": main, "device": device, "thread aside": aside}
    if layout.workers:
        servers["workers"] = made / layout.workers
        servers["pin thread"] = pin
        servers["prefetch"] = (made + pin) / (layout.workers * layout.prefetch)
    else:
        servers["main thread"] += made
    core_s = work.service_cpu + work.take_cpu + work.body_cpu + work.aside_cpu + work.body_wide * layout.width
    if layout.workers and layout.pins:
        core_s = core_s + work.pin_cpu
    servers["cores"] = float(core_s.mean()) * batches / layout.cores
    return servers


def deterministic_limit(pipeline: Pipeline) -> float:
    """Seconds a step at least."""
    return max(server_times(pipeline).values())

"""From a recording to a pipeline: what each part of the program would take if it were alone on the machine."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from unstall.diagnose.ranks import late_ranks, named
from unstall.model import function_shares, recorded, thresholds
from unstall.model.machine import speed
from unstall.model.pipeline_model import MODEL, Pipeline
from unstall.model.recorded import ModelInput, NotRecorded
from unstall.model.simulate import simulate
from unstall.model.team_stalls import stalled_seconds
from unstall.model.work import Floats, Layout
from unstall.records.measurements import LoaderMeasurement, Measurement

if TYPE_CHECKING:
    from unstall.benchmark.measure import LoopMeasurement
    from unstall.records.archive import Archive


def of(measured: LoopMeasurement) -> Pipeline:
    """The pipeline of a run that has just been measured. Raises :class:`~unstall.model.recorded.NotRecorded`."""
    return build(recorded.of_measured(measured))


def of_archive(archive: Archive) -> Pipeline:
    """The pipeline of an archived run. Raises :class:`~unstall.model.recorded.NotRecorded`."""
    return build(recorded.of_archive(archive))


def build(run: ModelInput) -> Pipeline:
    """The pipeline of a recorded run, fitted so that its simulation takes the recorded time.

    Raises :class:`~unstall.model.recorded.NotRecorded` where that one waits for another rank: what would be gained is
    there.
    """
    measured = run.measurement
    late = [rank.rank for rank in late_ranks(measured.ranks) if rank.pid != measured.main_pid]
    if late:
        raise NotRecorded(
            f"the other ranks wait for {named(late)}, and a prediction knows one rank: `unstall simplify` measures all"
        )
    loader = measured.loader if measured.loader and measured.loader.batches_per_step else None
    on_device = measured.model.device not in ("", "cpu")
    left_out = {"validation", *(("data_wait",) if loader else ()), *(("sync",) if on_device else ())}
    names = tuple(name for name in run.names if name not in left_out)
    columns = [run.names.index(name) for name in names]
    seconds, blocked = run.steps[:, columns], run.blocked[:, columns].copy()
    if not on_device and measured.model.threads > 1:
        # The main thread waits there for its team, not for a disk.
        model = [names.index(name) for name in MODEL]
        blocked[:, model] = stalled_seconds(seconds[:, model], measured.team_delay_s)
    pipeline = Pipeline(
        layout=_layout(run, loader),
        phases=names,
        compute=np.clip(seconds - blocked, 0, None),
        wait=blocked,
        on_device=on_device,
        device_s=_device_s(run) if on_device else 0.0,
        threads=measured.model.threads or 1,
        measured_s=measured.step.mean,
        spread=measured.spread,
        function_shares=function_shares.of(measured),
        has_loader=loader is not None,
        refetch_s=measured.refetch_s,
        closing=_closing_shares(run, loader),
    )
    if loader is not None:
        pipeline = replace(pipeline, busy_seen=_busy_seen(pipeline.layout, measured))
        pipeline = _with_loader(pipeline, run, loader)
    if not on_device:
        pipeline = _fit(pipeline, measured, float((seconds).sum(axis=1).mean()))
    return pipeline if pipeline.layout.workers else _alone(pipeline)


def _alone(pipeline: Pipeline) -> Pipeline:
    """Without workers it is known what the main thread had beside it: out of what was seen goes what that cost.

    It cost teams of threads more than a single one, so that it shifts the shares of the phases.
    """
    return replace(pipeline, compute=pipeline.compute * pipeline.body_rates(pipeline.layout.contention))


def _layout(run: ModelInput, loader: LoaderMeasurement | None) -> Layout:
    measured = run.measurement
    syncs = measured.share("sync") > thresholds.SYNCS
    cores = measured.cores / max(len(measured.rank_pids), 1)
    layout = Layout(cores=cores, syncs=syncs, background=measured.other_cores, contention=thresholds.CONTENTION)
    if loader is None:
        return replace(layout, epoch=thresholds.LONG_EPOCH, epoch_close_s=run.gap_s * thresholds.LONG_EPOCH)
    epoch, open_s, close_s = _epochs(run, loader)
    return replace(
        layout,
        workers=loader.workers,
        prefetch=loader.prefetch_factor or 2,
        in_order=loader.in_order,
        epoch=epoch,
        epoch_open_s=open_s,
        epoch_close_s=close_s,
    )


def _epochs(run: ModelInput, loader: LoaderMeasurement) -> tuple[int, float, float]:
    """Batches in an epoch, and the seconds to open one and to close one."""
    measured = run.measurement
    if not loader.epochs or measured.total_steps <= loader.epochs:
        batches = thresholds.LONG_EPOCH * loader.batches_per_step
        return round(batches), 0.0, run.gap_s * thresholds.LONG_EPOCH
    steps = measured.total_steps / loader.epochs
    opened = loader.start_s * steps
    # The first batch of an epoch is waited for in any case, and the simulation does so by itself.
    opened -= min(opened, loader.service_s) if loader.workers else 0.0
    closed = run.gap_s * steps * sum(_closing(run, loader).values())
    return max(1, round(steps * loader.batches_per_step)), opened, closed


def _closing(run: ModelInput, loader: LoaderMeasurement | None) -> dict[str, float]:
    """By phase, the share of what comes between epochs; what opens the loader's next one is known by itself.

    What the model's phases take longer then goes with its causes: other code, and batches that are not yet there.
    """
    left_out = ("data_wait", *MODEL) if loader is not None else MODEL
    return {name: share for name, share in run.gap_shares.items() if name not in left_out}


def _closing_shares(run: ModelInput, loader: LoaderMeasurement | None) -> dict[str, float]:
    closing = _closing(run, loader)
    return {name: share / sum(closing.values()) for name, share in closing.items()}


def _device_s(run: ModelInput) -> float:
    """The device's work a step, from how long the program waits for it: all of the step, if it does in each."""
    measured = run.measurement
    if run.device_busy is not None:
        return run.device_busy * measured.regular_s
    waiting = measured.phase_s("sync")
    launching = measured.phase_s(*MODEL)
    return waiting + launching if waiting else 0.0


def _with_loader(pipeline: Pipeline, run: ModelInput, loader: LoaderMeasurement) -> Pipeline:
    service = np.array([[loader.service_cpu_s, loader.service_blocked_s]])
    if len(run.fetches):
        wall, cpu, blocked = run.fetches.T
        waited = np.clip(blocked, 0, wall)
        # What a thread did on a core; the rest of the wall time it was ready and had none.
        alone = np.clip(np.minimum(cpu, wall - waited), 0, None) * speed(
            pipeline.busy_seen, pipeline.layout.cores, pipeline.layout.contention
        )
        service = np.stack([alone, waited], axis=1)
    return replace(
        pipeline,
        service=service,
        collate_share=min(1.0, loader.collate_s / loader.service_s) if loader.service_s else 0.0,
        batches_per_step=loader.batches_per_step,
        persistent_workers=loader.persistent_workers,
    )


def _busy_seen(layout: Layout, measured: Measurement) -> float:
    """Cores that were busy, those of other programs too, while a batch was made."""
    step_s = measured.step.mean
    if not step_s or not layout.workers:
        return 1 + layout.background
    others = measured.main_cpu_s + measured.worker_cpu_s * (1 - 1 / layout.workers)
    return 1 + layout.background + others / step_s


def _fit(pipeline: Pipeline, measured: Measurement, body_s: float) -> Pipeline:
    """Find what the main thread's computing takes alone, where loader workers took cores from it while run.

    Its core-seconds a step, those of its intra-op threads included, are known; how many cores it used at once is not:
    the less time it takes alone, the more, and it takes no longer than its core-seconds. Of all that fits these, the
    one is taken whose simulated body takes the recorded time. Where none does, its threads waited for cores and for
    each other longer than any law of sharing says: out of what was seen goes what the scheduler counted of that, but
    for the stalls, which are out of it already.
    """
    core_s = measured.main_cpu_s - pipeline.making_s
    recorded_compute = pipeline.compute
    compute_s = float(recorded_compute.sum(axis=1).mean())

    def scaled(share: float) -> Pipeline:
        compute = recorded_compute * share
        wide_s = float(compute[:, np.isin(pipeline.phases, MODEL)].sum(axis=1).mean())
        narrow_s = float(compute.sum(axis=1).mean()) - wide_s
        width = (core_s - narrow_s) / wide_s if wide_s else 1.0
        width = float(np.clip(width, 1.0, min(pipeline.threads, pipeline.layout.cores)))
        return replace(pipeline, compute=compute, layout=replace(pipeline.layout, width=width))

    def miss(share: float) -> float:
        """Of the simulated body, relative."""
        simulated = _body_s(scaled(share))
        return abs(math.log(simulated / body_s)) if simulated > 0 else math.inf

    if not pipeline.layout.workers or compute_s <= 0 or body_s <= 0:
        return scaled(1.0)
    most = min(1.0, core_s / compute_s) if core_s > 0 and pipeline.threads > 1 else 1.0
    if most >= thresholds.LEAST_ALONE:
        shares = np.geomspace(most, thresholds.LEAST_ALONE, thresholds.FIT_TRIES)
        best = min(shares, key=miss)
        step = float(shares[0] / shares[1])
        best = min(np.geomspace(min(best * step, most), best / step, thresholds.FIT_TRIES), key=miss)
        if miss(float(best)) < thresholds.FIT_ENOUGH:
            return scaled(float(best))
    # Its core-seconds say nothing then: a thread that waits for one without a core does so spinning.
    stalled_s = float(pipeline.wait[:, np.isin(pipeline.phases, MODEL)].sum(axis=1).mean())
    return scaled(max(thresholds.LEAST_COMPUTED, 1 - max(0.0, measured.team_delay_s - stalled_s) / compute_s))


def _body_s(pipeline: Pipeline) -> float:
    """Simulated seconds a step from a batch in hand to the step's end."""
    timeline = simulate(pipeline.draw(thresholds.FIT_BATCHES), replace(pipeline.layout, epoch=0))
    body: Floats = timeline.done - timeline.got
    return float(body[thresholds.FIT_BATCHES // 10 :].mean()) * pipeline.batches_per_step

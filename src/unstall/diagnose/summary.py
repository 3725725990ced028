"""From everything measured and found to the Report: the record that all renderers and other programs read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unstall.diagnose import compiled, growth, page_faults, ranks
from unstall.diagnose.blame import hotspots
from unstall.diagnose.features import HostFeatures, build
from unstall.diagnose.findings import confidence_caveats, findings
from unstall.diagnose.gpu_clocks import held_back
from unstall.diagnose.gpu_windows import GpuWindow
from unstall.diagnose.overview import RunContext, info, without_steps
from unstall.diagnose.patterns.base import Features, at
from unstall.diagnose.set_up import startup
from unstall.diagnose.thresholds import GROWTH_BYTES, GROWTH_EXPLAINED
from unstall.records.experiments import Ceiling
from unstall.records.measurements import Measurement
from unstall.records.report import Finding, ModuleTime, Report
from unstall.records.run import Generation, Throughput, Utilization
from unstall.statistics import slope
from unstall.text.units import bytes_, known, seconds


def report(run: RunContext, measurement: Measurement | None, window: GpuWindow | None = None) -> Report:
    """The report of a run; without a loop in it, one that says so. ``window``: what was recorded of its device."""
    if measurement is None:
        return without_steps(run)
    host = build(measurement)
    window = window or GpuWindow()
    use = _utilization(measurement, host, window.gpu)
    ranked = findings(Features(host, window.features), use)
    lines, _ = confidence_caveats(measurement)
    notes = [*run.notes, *ranks.notes(measurement), *held_back(measurement.gpu_states), *lines]
    if host.account is not None:
        undisturbed = seconds(host.account.step_s)
        notes.append(f"time lost to other programs is taken out: shares and verdict are of a step of {undisturbed}")
    notes += [note for note in window.notes if note not in notes]
    if measurement.kind == "request":
        notes.append(_of_requests(measurement.generation))
    if measurement.nan_loss:
        notes.append("the loss was NaN in the first steps: the timings are valid, but the training is broken")
    faulting = page_faults.evidence(measurement)
    if faulting is not None and faulting not in ranked[0].evidence:
        notes.append(f"{faulting}; {page_faults.ADVICE}")
    grown = use.rss_growth_bytes_per_step
    if known(grown) and grown * measurement.steps >= GROWTH_BYTES:
        notes += _memory_that_ends(host, grown)
    per_s = 1 / measurement.step.mean
    loader, samples = measurement.loader, measurement.samples_per_step
    generation = measurement.generation
    tokens = generation.sequences * generation.new_tokens if generation is not None else None
    return Report(
        kind="run",
        run=info(run, notes, measurement),
        throughput=Throughput(
            steps_per_s=per_s,
            batches_per_s=loader.batches_per_step * per_s if loader and loader.batches_per_step else None,
            samples_per_s=samples * per_s if samples else None,
            env_steps_per_s=measurement.envs * per_s if measurement.kind == "env" else None,
            tokens_per_s=tokens * per_s if tokens else None,
            flops_per_s=measurement.model.flops * per_s if measurement.model.flops else None,
            mfu=_mfu(measurement),
            step_s=measurement.step,
            between=measurement.between,
            flops_coverage=measurement.model.flops_coverage,
        ),
        utilization=use,
        phases=host.refined_phases(),
        account=host.account,
        verdict=ranked[0],
        findings=ranked,
        ceilings=_ceilings(host, ranked),
        hotspots=hotspots(host.blame),
        modules=_modules(measurement) if run.modules else [],
        spans=measurement.spans,
        callbacks=measurement.callbacks,
        compiled=compiled.explained(measurement.compiled_frames),
        startup=startup(measurement, host.set_up),
        generation=generation,
        communication=ranks.communication(measurement),
        trace=window.figures,
    )


def _memory_that_ends(host: HostFeatures, bytes_per_step: float) -> Iterator[str]:
    """Of memory that grows now, and not for good, what it is made of."""
    grows = f"memory grows by {bytes_(bytes_per_step)} a step"
    if growth.is_filling(host.measurement.memory, bytes_per_step):
        yield f"{grows} within what was allocated or mapped before: an array that fills, say, or a file that is read"
    elif growth.is_fragmentation(host.measurement.memory, bytes_per_step):
        yield (
            f"{grows} with what is freed and fits nothing later, not with what is kept: sizes that differ from step to "
            "step do that for a while; another allocator, such as jemalloc, holds less"
        )
    if host.keepers.bounded_bytes_per_step > GROWTH_EXPLAINED * bytes_per_step:
        keeper = host.keepers.bounded[0]
        where = at(keeper.culprit)
        yield f"{grows} until {keeper.kept.path} is full (`{keeper.bound}`{where}): see that it fits in memory then"


def _of_requests(generation: Generation | None) -> str:
    step = "a step is a request: a call of generate() and what the program does until the next"
    return step if generation is not None else f"{step}; its prefill and its tokens were not seen in this version"


def _mfu(measurement: Measurement) -> float | None:
    model = measurement.model
    if not model.flops or not model.peak_flops:
        return None
    share = model.flops / measurement.step.mean / model.peak_flops
    return share if share <= 1 else None  # the peak was measured while others had the cores


def _utilization(measurement: Measurement, host: HostFeatures, traced: list[float] | None) -> Utilization:
    memory = measurement.memory
    network = sum(phase.network_bytes for phase in measurement.phases)
    if measurement.loader and measurement.loader.workers:
        network += measurement.loader.network_bytes * measurement.loader.batches_per_step
    return Utilization(
        cpu=min(1.0, host.demand),
        gpu=measurement.gpu or traced,
        gpu_states=list(measurement.gpu_states),
        run_delay=measurement.run_delay,
        rss_peak_bytes=memory.rss_peak,
        rss_growth_bytes_per_step=_growth(memory.rss_by_step),
        gpu_memory_peak_bytes=memory.device_peak,
        gpu_memory_growth_bytes_per_step=_growth(memory.device_by_step),
        network_bytes_per_step=network or None,
        disk_read_bytes_per_step=measurement.disk_read or None,
        other_processes_cores=measurement.other_cores,
    )


def _growth(series: Sequence[tuple[float, float]]) -> float | None:
    return slope(growth.floors(series))[0] if growth.is_growing(series) else None


def _ceilings(host: HostFeatures, ranked: list[Finding]) -> list[Ceiling]:
    """What the step rate would be without each finding's component."""
    actual = 1 / host.measurement.step.mean
    return [
        Ceiling(
            component=f"without {finding.culprit.name if finding.culprit else finding.pattern}",
            steps_per_s=actual * finding.ceiling.value,
            known_by=finding.ceiling.known_by,
            ci95=(actual * finding.ceiling.low, actual * finding.ceiling.high),
            gap=1 - 1 / finding.ceiling.value,
        )
        for finding in ranked
        if finding.ceiling is not None and finding.ceiling.value > 1
    ]


def _modules(measurement: Measurement) -> list[ModuleTime]:
    return [
        ModuleTime(
            name=module.name or "(model)",
            type=module.type,
            calls_per_step=module.calls,
            forward_s=module.forward_s,
            self_s=module.self_s,
        )
        for module in measurement.modules[:50]
    ]

"""Which experiments are worth their time, from what the first run shows: the most telling first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from unstall.child import allocator
from unstall.child.experiments.interventions.base import Intervention, path_of
from unstall.child.experiments.interventions.cached import CachedIntervention
from unstall.child.experiments.interventions.checks import ChecksIntervention
from unstall.child.experiments.interventions.delay import DelayIntervention
from unstall.child.experiments.interventions.stub import StubIntervention
from unstall.child.experiments.interventions.threads import ThreadsIntervention
from unstall.child.seams import built_in
from unstall.diagnose import page_faults
from unstall.diagnose.debugging_aids import ANOMALY, DISTRIBUTIONS
from unstall.model.function_shares import DATA, FunctionShares
from unstall.records.measurements import Measurement
from unstall.records.report import Finding, LineTime, ProcessRole, Report
from unstall.records.vocabulary import Tick, seam_of
from unstall.simplify import registry, thresholds
from unstall.simplify.experiment import Experiment, ExperimentResult

SETTINGS = ("workers", "prefetch", "threads", "ranks", "keep-memory")
"""What :func:`setting` can change."""
_THE_REMEDY = {
    "threads": ("threads",),
    "keep-memory": ("page-faults",),
    ChecksIntervention.name: (ANOMALY.cause, DISTRIBUTIONS.cause),
}
"""Interventions that are the remedy of causes."""
_A_REMEDY = {"threads": "compute-bound", "keep-memory": "compute-bound", "workers": "input-bound"}
"""Settings that are one remedy of a pattern, beside others."""
_LOADER_ARGUMENTS = {"workers": "num_workers", "prefetch": "prefetch_factor"}
_CALLS_OF_A_STEP = {
    "optimizer": (Tick.OPTIMIZER, Tick.BACKWARD, Tick.DATA),
    "backward": (Tick.BACKWARD, Tick.DATA),
    "env": (Tick.ENV,),
    "request": (Tick.REQUEST, Tick.FORWARD),
    "batch": (Tick.DATA, Tick.FORWARD),
    "forward": (Tick.FORWARD,),
    "explicit": (Tick.EXPLICIT, Tick.OPTIMIZER, Tick.BACKWARD),
}


@dataclass(frozen=True)
class ReplaceableFunction:
    """A function of the user's that can be stood in for."""

    name: str
    file: str | None
    process: ProcessRole = "main"
    of_data: bool = False
    """It is part of making batches."""


def experiments(report: Report, measurement: Measurement) -> list[Experiment]:
    """All experiments that this program gives cause for, each name once."""
    functions = [*suspects(report, measurement)]
    settings = [*thread_settings(measurement), *memory_settings(measurement), *loader_settings(measurement)]
    planned = [stub(function) for function in functions[:1]]
    planned += data_experiments(measurement)
    planned += [one for one in settings if is_the_remedy(one, report.verdict)][:1]
    planned += [stub(function) for function in functions[1:]]
    planned += [free(kind) for kind in worthwhile(report, measurement)]
    planned += delays(report, measurement, functions)
    planned += settings
    if len(measurement.ranks) > 1:
        planned.append(setting("ranks", 1))
        planned += rank_delays(report, measurement)
    return list({experiment.name: experiment for experiment in planned}.values())


def is_the_remedy(experiment: Experiment, finding: Finding) -> bool:
    """Whether the experiment does what is to be done about a finding's cause."""
    return finding.cause in _THE_REMEDY.get(experiment.intervention, ())


def is_a_remedy(experiment: Experiment, finding: Finding) -> bool:
    """Whether what the experiment does may help, beside what else there is to do about a finding."""
    return is_the_remedy(experiment, finding) or _A_REMEDY.get(experiment.intervention) == finding.pattern


def stub(function: ReplaceableFunction) -> Experiment:
    """The function answers from the record."""
    return Experiment(
        name=f"without {function.name}",
        intervention=StubIntervention.name,
        arm=(StubIntervention.specification(name=function.name, file=function.file),),
        component=function.name,
        touches_data=function.of_data,
    )


def free(kind: type[Intervention]) -> Experiment:
    """The work of one kind is free."""
    return Experiment(
        kind.title, kind.name, (kind.specification(),), component=kind.component, touches_data=kind.touches_data
    )


def delay(
    name: str,
    file: str | None,
    share: float,
    by: str = "spin",
    touches_data: bool = False,
    rank: int | None = None,
) -> Experiment:
    """The function, or kind of work, takes so much longer; on one rank alone, where one is given."""
    kind = registry.components().get(name)
    work: dict[str, Any] = {"file": file} if kind is None else {"target": path_of(kind)}
    where = {} if rank is None else {"rank": rank}
    on_rank = "" if rank is None else f"rank {rank}: "
    return Experiment(
        name=f"{on_rank}{name} +{share:.0%}" + (" asleep" if by == "sleep" else ""),
        intervention=DelayIntervention.name,
        arm=(DelayIntervention.specification(name=name, share=share, by=by, **work, **where),),
        component=None if where else name,
        touches_data=touches_data,
        share=share,
    )


def data_experiments(measurement: Measurement) -> Iterator[Experiment]:
    """Two arms beside the program as it is: cached batches, and the same while placebos take the workers' cores."""
    loader = measurement.loader
    if loader is None or not loader.batches_per_step:
        return
    cached = free(CachedIntervention)
    yield cached
    if loader.workers and loader.service_cpu_s:
        yield Experiment(
            "cached batches, and placebos on the workers' cores",
            "placebo",
            base=cached.arm,
            placebo=True,
            touches_data=True,
        )


def worthwhile(report: Report, measurement: Measurement) -> list[type[Intervention]]:
    """The kinds of work with a part of the step worth trying, but for the data; training itself comes last."""
    shares = {kind: kind.share(report, measurement) for kind in registry.components().values()}
    kinds = [kind for kind, share in shares.items() if share >= thresholds.MIN_SHARE and kind is not CachedIntervention]
    return sorted(kinds, key=lambda kind: (kind.is_training, -shares[kind]))


def delays(report: Report, measurement: Measurement, functions: list[ReplaceableFunction]) -> Iterator[Experiment]:
    """Each disjoint part of the step slowed a little; together they should account for the step."""
    loader, model = measurement.loader, measurement.model
    if loader is not None and (loader.workers or CachedIntervention.share(report, measurement) >= thresholds.MIN_SHARE):
        yield delay(CachedIntervention.component, None, thresholds.DELAY_SHARE, touches_data=bool(loader.workers))
    if model.root and any(phase.name == "forward" and phase.share >= thresholds.MIN_SHARE for phase in report.phases):
        yield delay(f"{model.root}.forward", model.file or None, thresholds.DELAY_SHARE)
    for kind in worthwhile(report, measurement):
        if kind.can_be_slowed:
            yield delay(kind.component, None, thresholds.DELAY_SHARE)
    for function in functions:
        if function.process == "main" and _outside_the_seams(function, report):
            yield delay(function.name, function.file, thresholds.DELAY_SHARE)


def rank_delays(report: Report, measurement: Measurement) -> Iterator[Experiment]:
    """Forward slowed on one rank alone: on the one that waits least, and on the one that waits most.

    What the step shows of it is how much the others wait for that rank.
    """
    ranks = report.communication.ranks if report.communication is not None else ()
    if not measurement.model.root or len(ranks) < 2:
        return
    by_wait = sorted(ranks, key=lambda rank: rank.exposed_s)
    for each in (by_wait[0], by_wait[-1]):
        name, file = f"{measurement.model.root}.forward", measurement.model.file or None
        yield delay(name, file, thresholds.DELAY_SHARE, rank=each.rank)


def thread_settings(measurement: Measurement) -> Iterator[Experiment]:
    """All the cores, where the operators use fewer; one thread inside them."""
    threads, cores = measurement.model.threads, int(measurement.cores)
    if 0 < threads < cores:
        yield setting("threads", cores)
    if threads > 1:
        yield setting("threads", 1)


def memory_settings(measurement: Measurement) -> Iterator[Experiment]:
    """Freed memory kept, where the kernel takes part of the step to give it anew and there is room for it."""
    faulting = page_faults.share(measurement) >= thresholds.MIN_SHARE
    if faulting and page_faults.has_room(measurement) and allocator.can_keep():
        yield setting("keep-memory", 1)


def loader_settings(measurement: Measurement) -> Iterator[Experiment]:
    """Other settings of the loader, each in a process of its own."""
    loader = measurement.loader
    if loader is None or not loader.batches_per_step or (loader.iterable and not loader.workers):
        return
    workers = loader.workers
    for number in sorted({0, max(1, workers // 2), workers * 2 or 1, int(measurement.cores)} - {workers}):
        yield for_loader(setting("workers", number), workers)
    if workers:
        yield for_loader(setting("prefetch", 2 * (loader.prefetch_factor or 2)), workers)


def setting(name: str, value: int) -> Experiment:
    """The program with another of the :data:`SETTINGS`; all but threads need a process of their own.

    KeyError for another name.
    """
    if name == "threads":
        title = f"{value} threads inside operators" if value > 1 else "one thread inside operators"
        return Experiment(title, name, arm=(ThreadsIntervention.specification(threads=value),))
    if name == "ranks":
        return Experiment("one rank alone", name, settings={"ranks": value})
    if name == "keep-memory":
        return Experiment("keeping freed memory", name, settings={"keep_freed_memory": True})
    settings = {"loader": {_LOADER_ARGUMENTS[name]: value}}
    if name == "prefetch":
        return Experiment(f"prefetch_factor {value}", name, settings=settings)
    title = f"{value} worker{'s' * (value != 1)}" if value else "no workers: batches made in the main process"
    return Experiment(title, name, settings=settings)


def for_loader(experiment: Experiment, workers: int) -> Experiment:
    """The experiment with a loader's setting for the program's main loader alone: that of so many workers."""
    if experiment.settings is None or "loader" not in experiment.settings:
        return experiment
    return replace(experiment, settings={"loader": {**experiment.settings["loader"], "from": workers}})


def placed(experiment: Experiment, shares: FunctionShares) -> Experiment:
    """The experiment that was asked for by a function's name, as the stacks show it: has it to do with making batches?

    Where no sample shows the function it may, and the loader's workers get time to settle.
    """
    keys = [key for spec in experiment.arm if "name" in spec for key in shares.find(str(spec["name"]))]
    if keys and not any(shares.share(DATA, key) for key in keys):
        return replace(experiment, touches_data=False)
    return experiment


def interaction(first: Experiment, second: Experiment) -> Experiment:
    """The second where the first is free already: is there a deeper bottleneck?"""
    return Experiment(
        name=f"{second.name}, once {first.name}",
        intervention="interaction",
        arm=second.arm,
        base=first.arm,
        touches_data=first.touches_data or second.touches_data,
    )


def deeper(results: list[ExperimentResult]) -> list[Experiment]:
    """With the costliest component gone, the others tried again: what was hidden behind it shows."""
    ceilings = [
        (result.ratio, result)
        for result in results
        if result.ratio is not None
        and result.state == "measured"
        and result.experiment.component
        and result.experiment.share is None
    ]
    ceilings.sort(key=lambda pair: -pair[0].value)
    if not ceilings or ceilings[0][0].low < thresholds.WORTH_DEEPER:
        return []
    (_, first), *others = ceilings
    behind = [other.experiment for _, other in others if not _overlap(first, other)]
    return [interaction(first.experiment, experiment) for experiment in behind[: thresholds.MOST_DEEPER]]


def suspects(report: Report, measurement: Measurement) -> Iterator[ReplaceableFunction]:
    """The functions that observation blames and that can be stood in for: those that do not hold the step itself."""
    holders = _holders(measurement)
    yielded = set()
    for line, of_data in _blamed(report):
        key = (line.file, line.function)
        last = line.function.rpartition(".")[2]
        stubbable = not last.startswith("<") and (line.file, last) not in holders
        if key not in yielded and stubbable and line.share >= thresholds.MIN_SHARE:
            yielded.add(key)
            yield ReplaceableFunction(line.function, line.file, line.process, of_data)


def _blamed(report: Report) -> Iterator[tuple[LineTime, bool]]:
    """The lines that are blamed, and whether for making batches."""
    for finding in report.findings:
        if finding.culprit is not None:
            of_data = finding.pattern == CachedIntervention.proves or finding.culprit.process == "worker"
            yield finding.culprit, of_data
    for spot in report.hotspots[:3]:
        yield spot, spot.phase == CachedIntervention.phase or spot.process == "worker"


def _holders(measurement: Measurement) -> set[tuple[str, str]]:
    """The functions, as (file, name), that the step itself happens in: without them there is none."""
    seams = built_in() + measurement.plugins.seams
    calls = _CALLS_OF_A_STEP.get(measurement.kind, ())
    holders = set()
    for site in measurement.sites:
        seam = seam_of(site.seam, seams)
        if seam is not None and seam.counts in calls:
            holders.add((site.file, site.function.rpartition(".")[2]))
            holders |= {(file, function.rpartition(".")[2]) for file, function, _ in site.callers}
    return holders


def _outside_the_seams(function: ReplaceableFunction, report: Report) -> bool:
    """Whether the function's time is in no phase that is slowed as such."""
    spots = [spot for spot in report.hotspots if (spot.function, spot.file) == (function.name, function.file)]
    return all(spot.phase in ("other", "callback", "sync") for spot in spots)


def _overlap(first: ExperimentResult, second: ExperimentResult) -> bool:
    """The same function under two names; or a function of the loader, and the whole data: one goes with the other."""
    both = first.experiment, second.experiment
    has_cached = any(experiment.intervention == CachedIntervention.name for experiment in both)
    of_data = has_cached and all(experiment.touches_data for experiment in both)
    return of_data or not first.replaced.isdisjoint(second.replaced)

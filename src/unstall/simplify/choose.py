"""Which experiments are worth their time, from what observation says: in the order of what they can tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from unstall.model.parts import DATA, Parts
from unstall.records.measurements import Measurement
from unstall.records.report import Culprit, ProcessRole, Report
from unstall.simplify.trial import Specification, Trial

_WORTH = 0.05  # of the step (or of a process's samples): less is not tried
_ELASTICITY = 0.5  # by how much a component is slowed to see what the step makes of it
_SEAMS_OF_A_STEP = {
    "optimizer": ("~optimizer", "~backward", "~data.next"),
    "env": ("~env.step",),
    "batch": ("~data.next", "~forward"),
    "forward": ("~forward",),
    "explicit": ("~step.next", "~optimizer", "~backward"),
}


@dataclass(frozen=True)
class Function:
    """A function of the user's that can be asked for."""

    name: str
    file: str | None
    process: ProcessRole = "main"
    of_data: bool = False
    """It is part of making batches."""

    def specification(self, kind: str, **more: object) -> Specification:
        return {"kind": kind, "name": self.name, "file": self.file, **more}


def trials(report: Report, measurement: Measurement) -> list[Trial]:
    """All experiments that this program gives cause for, the most telling first."""
    functions = [*suspects(report, measurement)]
    wanted = [stub(function) for function in functions[:1]]
    wanted += data_trials(measurement)
    wanted += [stub(function) for function in functions[1:]]
    wanted += kind_trials(report, measurement)
    if functions and functions[0].process == "worker":
        wanted.append(asleep(functions[0]))
    wanted += elasticities(report, measurement, functions)
    wanted += thread_trials(measurement)
    wanted += setting_trials(measurement)
    wanted += rank_trials(measurement)
    return list({trial.name: trial for trial in wanted}.values())


def stub(function: Function) -> Trial:
    """The function answers from the record."""
    return Trial(
        name=f"without {function.name}",
        intervention="stub",
        arm=(function.specification("stub"),),
        component=function.name,
        touches_data=function.of_data,
    )


def asleep(function: Function) -> Trial:
    """The function takes its time, but no core."""
    return Trial(
        name=f"{function.name} asleep instead",
        intervention="sleep",
        arm=(function.specification("sleep"),),
        touches_data=True,
    )


def delay(name: str, file: str | None, share: float, by: str = "spin", touches_data: bool = False) -> Trial:
    """The function, or kind of work, takes so much longer."""
    return Trial(
        name=f"{name} +{share:.0%}" + (" asleep" if by == "sleep" else ""),
        intervention="delay",
        arm=({"kind": "delay", "name": name, "file": file, "share": share, "by": by},),
        share=share,
        touches_data=touches_data,
        component=name,
    )


def data_trials(measurement: Measurement) -> Iterator[Trial]:
    """The three arms: real, cached, and cached while placebos take the cores that the workers took."""
    loader = measurement.loader
    if loader is None or not loader.batches_per_step:
        return
    cached: Specification = {"kind": "cached"}
    yield Trial("cached batches", "cached", arm=(cached,), component="data", touches_data=True)
    if loader.workers and loader.service_cpu_s:
        yield Trial(
            "cached batches, and placebos on the workers' cores",
            "placebo",
            arm=(),
            base=(cached,),
            placebo=True,
            touches_data=True,
        )


def kind_trials(report: Report, measurement: Measurement) -> Iterator[Trial]:
    """The kinds of work that take a part of the step worth trying."""
    shares: dict[str, float] = {phase.name: phase.share for phase in report.phases}
    ways = (
        ("env", "env", "env"),
        ("callback", "callbacks", "logging, plotting and checkpoint calls"),
        ("validation", "validation", "validation"),
        ("comm", "collectives", "collectives"),
        ("optimizer", "optimizer", "the optimizer's step"),
        ("backward", "backward", "backward"),
    )
    # The user's own logging has a name and is tried by it; as a kind of work go the libraries' calls, which are timed.
    shares["callback"] = sum(measurement.callbacks.values()) / (measurement.step.mean or 1.0)
    for phase, kind, words in ways:
        if shares.get(phase, 0.0) >= _WORTH:
            yield of_kind(kind, words)
    loader = measurement.loader
    waits = loader is not None and loader.service_network_s > _WORTH * loader.service_s
    if waits or any(phase.network_s > _WORTH * measurement.step.mean for phase in report.phases):
        yield of_kind("network", "the network: HTTP answers from the record")


def of_kind(kind: str, words: str | None = None) -> Trial:
    """The work of one kind is free."""
    specification: Specification = {"kind": kind} if kind in ("validation", "cached") else {"kind": kind, "name": kind}
    return Trial(
        name=f"without {words or kind}",
        intervention=kind,
        arm=(specification,),
        component=kind,
        touches_data=kind in ("cached", "network"),
    )


def elasticities(report: Report, measurement: Measurement, functions: list[Function]) -> Iterator[Trial]:
    """Each disjoint part of the step slowed a little; together they should account for the step."""
    shares: dict[str, float] = {phase.name: phase.share for phase in report.phases}
    loader, model = measurement.loader, measurement.model
    if loader is not None and (loader.workers or shares.get("data_wait", 0.0) >= _WORTH):
        yield delay("data", None, _ELASTICITY, touches_data=bool(loader.workers))
    if shares.get("forward", 0.0) >= _WORTH and model.root:
        yield delay(f"{model.root}.forward", model.file or None, _ELASTICITY)
    for phase in ("backward", "optimizer", "env"):
        if shares.get(phase, 0.0) >= _WORTH:
            yield delay(phase, None, _ELASTICITY)
    for function in functions:
        if function.process == "main" and _outside_the_seams(function, report):
            yield delay(function.name, function.file, _ELASTICITY)


def thread_trials(measurement: Measurement) -> Iterator[Trial]:
    """One thread inside operators; all the cores, where the program uses fewer."""
    threads, cores = measurement.model.threads, int(measurement.cores)
    if threads > 1:
        yield setting("threads", 1)
    elif threads and cores > 1:
        yield setting("threads", cores)


def setting_trials(measurement: Measurement) -> Iterator[Trial]:
    """Other settings of the loader, each in a process of its own."""
    loader = measurement.loader
    if loader is None or not loader.batches_per_step or (loader.iterable and not loader.workers):
        return
    workers = loader.workers
    for number in sorted({0, max(1, workers // 2), workers * 2 or 1, int(measurement.cores)} - {workers}):
        yield of_loader(setting("workers", number), workers)
    if workers:
        yield of_loader(setting("prefetch", 2 * (loader.prefetch_factor or 2)), workers)


def rank_trials(measurement: Measurement) -> Iterator[Trial]:
    """One rank alone: what the ranks cost each other."""
    if len(measurement.ranks) > 1:
        yield setting("ranks", 1)


def setting(name: str, value: int) -> Trial:
    """The program with another setting: threads inside operators, workers and prefetch of the loader, ranks.

    All but threads need a process of their own. KeyError for another name.
    """
    if name == "threads":
        words = f"{value} threads inside operators" if value > 1 else "one thread inside operators"
        return Trial(words, name, arm=({"kind": "threads", "threads": value},))
    if name == "ranks":
        return Trial("one rank alone", name, arm=(), settings={"ranks": value})
    argument = {"workers": "num_workers", "prefetch": "prefetch_factor"}[name]
    words = f"{value} worker{'s' * (value != 1)}" if value else "no workers: batches made in the main process"
    words = words if name == "workers" else f"prefetch_factor {value}"
    return Trial(words, name, arm=(), settings={"loader": {argument: value}})


def of_loader(trial: Trial, workers: int) -> Trial:
    """The trial of a loader's setting for the program's main one: that of so many workers."""
    if trial.settings is None or "loader" not in trial.settings:
        return trial
    return replace(trial, settings={"loader": {**trial.settings["loader"], "from": workers}})


def placed(trial: Trial, seen: Parts) -> Trial:
    """A trial that was asked for by a function's name: by the stacks, does it have to do with making batches?

    Where no sample shows the function it may, and there is time for the loader's workers to settle.
    """
    names = [str(one["name"]) for one in trial.arm if "name" in one]
    shown = [key for name in names for key in seen.find(name)]
    if shown and not any(seen.share(DATA, key) for key in shown):
        return replace(trial, touches_data=False)
    return trial


def interaction(first: Trial, second: Trial) -> Trial:
    """The second where the first is gone already: is there a deeper bottleneck?"""
    return Trial(
        name=f"{second.name}, once {first.name}",
        intervention="interaction",
        arm=second.arm,
        base=first.arm,
        component=None,
        touches_data=first.touches_data or second.touches_data,
    )


def suspects(report: Report, measurement: Measurement) -> Iterator[Function]:
    """The functions that observation blames and that can be stood in for: those that do not hold the step itself."""
    holders = _holders(measurement)
    seen = set()
    for culprit, of_data in _blamed(report):
        key = (culprit.file, culprit.function)
        last = culprit.function.rpartition(".")[2]
        stubbable = not last.startswith("<") and (culprit.file, last) not in holders
        if key not in seen and stubbable and culprit.share >= _WORTH:
            seen.add(key)
            yield Function(culprit.function, culprit.file, culprit.process, of_data)


def _blamed(report: Report) -> Iterator[tuple[Culprit, bool]]:
    """Who is blamed, and whether for making batches."""
    for finding in report.findings:
        if finding.culprit is not None:
            yield finding.culprit, finding.pattern == "input-bound" or finding.culprit.process == "worker"
    for spot in report.hotspots[:3]:
        culprit = Culprit(function=spot.function, file=spot.file, line=spot.line, share=spot.share, where=spot.where)
        yield culprit, spot.phase == "data_wait" or spot.process == "worker"


def _holders(measurement: Measurement) -> set[tuple[str, str]]:
    """The functions, as (file, name), that the step itself happens in: without them there is none."""
    seams = _SEAMS_OF_A_STEP.get(measurement.kind, ())
    holders = set()
    for site in measurement.sites:
        if site.seam in seams and (site.grad or site.seam != "~forward" or measurement.kind != "optimizer"):
            holders.add((site.file, site.function.rpartition(".")[2]))
            holders |= {(file, function.rpartition(".")[2]) for file, function, _ in site.callers}
    return holders


def _outside_the_seams(function: Function, report: Report) -> bool:
    """Whether the function's time is in no phase that is slowed as such."""
    spots = [spot for spot in report.hotspots if (spot.function, spot.file) == (function.name, function.file)]
    return all(spot.phase in ("other", "callback", "sync") for spot in spots)

"""The number of loader workers, more or fewer, kept alive between epochs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from unstall.optimize.context import RemedyContext
from unstall.optimize.observed import ObservedLoader
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, proposals_of
from unstall.optimize.source.edit import replaced, with_keyword, without_keyword
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.files import Sources
from unstall.optimize.thresholds import MOST_WORKERS
from unstall.text.units import percent

_LAW = "max(body, loading / workers, all core-seconds / cores)"


class LoaderWorkers(Remedy):
    """Worker counts around what the pipeline law says, for the loader that the main loop draws from."""

    name = "loader-workers"
    brief = "more or fewer workers, kept alive between epochs"
    needs = "a `DataLoader` with a map-style dataset"
    patterns = ("input-bound",)
    exactness = "exact"
    """Under per-sample seeding; without it, workers draw other random augmentations, as in any run."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        loader = context.main_loader
        if loader is None:
            raise NotApplicable("the program iterates no DataLoader")
        if not loader.map_style:
            raise NotApplicable(
                "an iterable dataset decides itself what each worker yields: more workers may repeat its samples"
            )
        if context.file_of(loader.call) is None:
            return [_at_run_time(context, loader, count) for count in counts(loader.num_workers, context.cores)]
        return proposals_of(_options(context, loader), lambda option: _proposal(context, loader, option), "")


class _Option(NamedTuple):
    """Keywords of the call that makes a loader; an empty value takes the keyword away."""

    title: str
    keywords: dict[str, str]
    predicted: float
    because: str


def _options(context: RemedyContext, loader: ObservedLoader) -> Iterator[_Option]:
    now, step_s = loader.num_workers, context.measurement.step.mean
    for count in counts(now, context.cores):
        keywords = {"num_workers": str(count)}
        if not count:
            keywords |= {"prefetch_factor": "", "persistent_workers": ""}
        elif not loader.persistent_workers:
            keywords["persistent_workers"] = "True"
        yield _Option(f"num_workers={count}", keywords, predict(context, count, now), _LAW)
    if now and not loader.persistent_workers:
        share = context.measurement.loader.start_s / step_s if context.measurement.loader else 0.0
        because = f"restarting {now} workers takes {percent(share)} of the time"
        yield _Option("persistent_workers=True", {"persistent_workers": "True"}, speedup_without(share), because)


def counts(now: int, cores: int) -> list[int]:
    """Worker counts to try: concurrency is not monotone, so fewer as well as more."""
    wanted = {0, 1, cores - 1, cores, 2 * cores if cores <= 2 else cores + 2, max(1, now // 2), now + 1, 2 * now}
    return sorted(count for count in wanted if 0 <= count <= MOST_WORKERS and count != now)


def predict(context: RemedyContext, count: int, now: int) -> float:
    """Speed-up of the step with this many workers: max over main thread, workers and the CPU law.

    Deterministic limit of the pipeline: T = max(u, s/W) with W workers, s + u without; and never less than (a + u)/C,
    with a the part of s that is not spent blocked: what computes needs a core. u is the step without the wait for data.
    """
    measurement = context.measurement
    loader = measurement.loader
    if loader is None or not loader.service_s:
        return 1.0
    step = measurement.step.mean
    wait = measurement.phase_s("data_wait")
    # Without workers the wait is the making of the batch; the two are then on the same clock.
    service = loader.service_s * (loader.batches_per_step or 1.0) if now else wait
    blocked = loader.service_blocked_s / loader.service_s
    computing = service * (1 - min(1.0, blocked))
    body = max(0.0, step - wait - loader.start_s)
    if count == 0:
        predicted = service + body
    else:
        predicted = max(body, service / count, (computing + body) / context.cores)
    return float(step / predicted) if predicted > 0 else 1.0


def _proposal(context: RemedyContext, loader: ObservedLoader, option: _Option) -> Proposal:
    sources = with_keywords(context, loader, option.keywords)
    assert loader.call is not None
    values = {name: value == "True" if value in ("True", "False") else int(value)
              for name, value in option.keywords.items() if value}  # fmt: skip
    return Proposal(
        f"{option.title} ({loader.call.file.name}:{loader.call.line})",
        option.predicted,
        option.because,
        sources=sources,
        settings={"loader": values},
        key=option.title,
        competes_for_cores=True,
    )


def with_keywords(context: RemedyContext, loader: ObservedLoader, keywords: Mapping[str, str]) -> Sources:
    """The sources with keywords of the call that makes a loader set; an empty value takes the keyword away.

    Raises NotApplicable where the call is not in the program's own code, or has these keywords.
    """
    path, module, call = context.locate(loader.call, "DataLoader")
    changed = call
    for name, value in keywords.items():
        changed = with_keyword(changed, name, value) if value else without_keyword(changed, name)
    if changed.deep_equals(call):
        raise NotApplicable("the loader is already set up this way")
    return context.sources.with_module(path, replaced(module.tree, call, changed))


def _at_run_time(context: RemedyContext, loader: ObservedLoader, count: int) -> Proposal:
    """So many workers for a loader that is made inside a library."""
    return Proposal(
        f"num_workers={count} at run time",
        predict(context, count, loader.num_workers),
        _LAW,
        settings={"loader": {"num_workers": count, "persistent_workers": bool(count)}},
        key=f"num_workers={count}",
        competes_for_cores=True,
    )


REMEDY = LoaderWorkers()

"""The number of loader workers, more or fewer, kept alive between epochs, and how far they work ahead."""

from __future__ import annotations

from pathlib import Path

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Made, Proposal, Unfit, predicted_without
from unstall.optimize.sources import SourceError
from unstall.text.units import percent

NAME = "loader-workers"
AREA: Area = "communication"
EXACTNESS: Exactness = "exact"
"""Exact under per-sample seeding; without it, workers draw other random augmentations, as in any run."""

_MAX_WORKERS = 32
_PREFETCH = 6
_PREFETCH_GAIN = 1.06  # of varying batches; as many as four workers and twice the variance give a third
_WAITS = 0.15  # of the step, for the next batch


def propose(case: Case) -> list[Proposal] | Unfit:
    """Worker counts around what the pipeline law says, for the loader that the main loop draws from."""
    loader = main_loader(case)
    if loader is None:
        return Unfit("the program iterates no DataLoader")
    if not loader["map_style"]:
        return Unfit("an iterable dataset decides itself what each worker yields: more workers may repeat its samples")
    if loader.call is None or case.user_file(loader.call.file) is None:
        return _at_run_time(case, loader)
    now = int(loader["num_workers"] or 0)
    found = []
    for count in counts(now, case.cores):
        predicted = predict(case, count, now)
        proposal = written(case, loader, count, predicted)
        if proposal is not None:
            found.append(proposal)
    if now and not loader["persistent_workers"]:
        kept = _persistent(case, loader, now)
        if kept is not None:
            found.append(kept)
    found += [one for one in (_prefetch(case, loader, now), _pinned(case, loader)) if one is not None]
    return found or Unfit("the call that makes the loader cannot be found in the source")


def main_loader(case: Case) -> Made | None:
    """The loader that the steps draw from: the first that was iterated of the kind that was measured."""
    measured = case.measurement.loader
    loaders = case.probe.loaders
    if measured is not None:
        for loader in loaders:
            same = loader["batch_size"] == measured.batch_size and loader["num_workers"] == measured.workers
            if same and loader["dataset"] == measured.dataset:
                return loader
    return loaders[0] if loaders else None


def own_dataset(case: Case) -> tuple[Made, Path] | Unfit:
    """The main loop's loader and the file of its samples, when these are made one by one in the program's own code."""
    loader = main_loader(case)
    if loader is None or not loader["map_style"]:
        return Unfit("there is no map-style dataset in the main loop")
    path = case.user_file(loader["getitem_file"])
    if path is None:
        return Unfit(f"the samples of {loader['dataset']} are not made in the program's own code")
    return loader, path


def counts(now: int, cores: int) -> list[int]:
    """Worker counts to try: concurrency is not monotone, so fewer as well as more."""
    wanted = {0, 1, cores - 1, cores, 2 * cores if cores <= 2 else cores + 2, max(1, now // 2), now + 1, 2 * now}
    return sorted(count for count in wanted if 0 <= count <= _MAX_WORKERS and count != now)


def predict(case: Case, count: int, now: int) -> float:
    """Speed-up of the step with this many workers: max over main thread, workers and the CPU law.

    Deterministic limit of the pipeline: T = max(u, s/W) with W workers, s + u without; and never less than (a + u)/C,
    with a the part of s that is not spent blocked: what computes needs a core. u is the step without the wait for data.
    """
    measurement = case.measurement
    loader = measurement.loader
    if loader is None or not loader.service_s:
        return 1.0
    step = measurement.step.mean
    per_step = loader.batches_per_step or 1.0
    wait = measurement.phase_s("data_wait")
    # Without workers the wait is the making of the batch; the two are then on the same clock.
    service = loader.service_s * per_step if now else wait
    blocked = loader.service_blocked_s / loader.service_s
    computing = service * (1 - min(1.0, blocked))
    body = max(0.0, step - wait - loader.start_s)
    if count == 0:
        predicted = service + body
    else:
        predicted = max(body, service / count, (computing + body) / case.cores)
    return float(step / predicted) if predicted > 0 else 1.0


def written(case: Case, loader: Made, count: int, predicted: float) -> Proposal | None:
    """So many workers, kept alive; None where the call cannot be changed."""
    keywords = {"num_workers": str(count)}
    if count and not loader["persistent_workers"]:
        keywords["persistent_workers"] = "True"
    if not count:
        keywords = {"num_workers": "0", "prefetch_factor": "", "persistent_workers": ""}
    return with_keywords(
        case, loader, keywords, title=f"num_workers={count}", predicted=predicted,
        because="max(body, loading / workers, all core-seconds / cores)",
    )  # fmt: skip


def _persistent(case: Case, loader: Made, now: int) -> Proposal | None:
    measured = case.measurement.loader
    share = measured.start_s / case.measurement.step.mean if measured else 0.0
    return with_keywords(
        case, loader, {"persistent_workers": "True"}, title="persistent_workers=True",
        predicted=1 / max(0.05, 1 - share), because=f"starting {now} workers anew takes {percent(share)} of the time",
    )  # fmt: skip


def _prefetch(case: Case, loader: Made, now: int) -> Proposal | None:
    """More batches ahead: in order, one slow batch holds up those that are ready behind it."""
    if not now or (loader["prefetch_factor"] or 2) >= _PREFETCH or case.share("data_wait") < _WAITS:
        return None
    return with_keywords(
        case, loader, {"prefetch_factor": str(_PREFETCH)}, title=f"prefetch_factor={_PREFETCH}",
        predicted=_PREFETCH_GAIN, because="slow batches hold up the ready ones behind them",
    )  # fmt: skip


def _pinned(case: Case, loader: Made) -> Proposal | None:
    """Page-locked batches, from which a GPU copies faster."""
    if loader["pin_memory"] or not case.measurement.model.device.startswith("cuda"):
        return None
    return with_keywords(
        case, loader, {"pin_memory": "True"}, title="pin_memory=True",
        predicted=predicted_without(case.share("transfer"), 0.5),
        because=f"copies to the device take {percent(case.share('transfer'))} of the step",
    )  # fmt: skip


def with_keywords(
    case: Case, loader: Made, keywords: dict[str, str], *, title: str, predicted: float, because: str
) -> Proposal | None:
    """A proposal that sets keywords of the call that makes a loader; an empty value takes the keyword away."""
    assert loader.call is not None
    path = case.user_file(loader.call.file)
    assert path is not None
    try:
        found = rewrite.Found(case.sources.parse(path))
        call = found.call(loader.call, lambda one: rewrite.name_of(one).endswith("DataLoader"))
        if call is None:
            return None
        changed = call
        for name, value in keywords.items():
            changed = rewrite.with_keyword(changed, name, value) if value else rewrite.without_keyword(changed, name)
        if changed.deep_equals(call):
            return None
        sources = case.sources.with_module(path, rewrite.replaced(found.module, call, changed))
    except SourceError:
        return None
    at_run_time = {name: value == "True" if value in ("True", "False") else int(value)
                   for name, value in keywords.items() if value}  # fmt: skip
    return Proposal(
        NAME, f"{title} ({path.name}:{loader.call.line})", EXACTNESS, predicted, because, sources,
        runtime={"loader": at_run_time}, key=title,
    )  # fmt: skip


def _at_run_time(case: Case, loader: Made) -> list[Proposal]:
    now = int(loader["num_workers"] or 0)
    return [
        Proposal(
            NAME, f"num_workers={count} at run time", EXACTNESS, predict(case, count, now),
            "max(body, loading / workers, all core-seconds / cores)",
            settings={"loader": {"num_workers": count, "persistent_workers": bool(count)}},
            not_written="the loader is made inside a library", key=f"num_workers={count}",
        )
        for count in counts(now, case.cores)
    ]  # fmt: skip

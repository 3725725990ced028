"""One loader, measured without the model: its samples, its stages, its batches, its workers. Runs in the program."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from unstall.child.data import devices, limits, loaders
from unstall.child.data.clock import Cost, timed
from unstall.child.data.reading import Source, read
from unstall.child.data.replaying import Stage, replay
from unstall.child.data.tracing import Tracer, elements_of

Emit = Callable[..., None]
"""Writes one result as a line of facts: ``part`` says which, the other keywords are its figures."""


def measure(loader: Any, emit: Emit, settings: dict[str, Any]) -> None:
    """Measure everything, emitting each result as it comes. ``settings``: ``budget_s`` for all of it, ``cores``."""
    import torch

    began, budget = time.perf_counter(), float(settings["budget_s"])
    source = Source(loader)
    emit(part="loader", cores=settings["cores"], **_facts(loader, source))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in a worker
    try:
        with torch.no_grad():
            read_cost = _samples(source, emit, budget)
            _stages(source, emit, budget, read_cost)
            _batches(source, emit, budget)
    finally:
        torch.set_num_threads(threads)
    _rates(loader, source, emit, settings, ends=began + limits.PATIENCE * budget)


def _rates(loader: Any, source: Source, emit: Emit, settings: dict[str, Any], *, ends: float) -> None:
    """The whole loader with every number of workers; the program's own first, in case the time does not reach."""
    counts = sorted({*loaders.worker_counts(float(settings["cores"])), loader.num_workers})
    seconds = limits.LOADING * float(settings["budget_s"]) / len(counts)
    count = _counter(loader, source)
    for workers in sorted(counts, key=lambda workers: workers != loader.num_workers):
        if time.perf_counter() > ends:
            emit(part="workers", workers=workers, error="not measured, the time was over: give a larger --budget")
        else:
            emit(part="workers", **loaders.rate(loader, workers, seconds=max(0.3, seconds), item_count=count))


def _facts(loader: Any, source: Source) -> dict[str, Any]:
    collate = loader.collate_fn
    context = loader.multiprocessing_context
    return {
        "dataset": type(loader.dataset).__qualname__,
        "length": _length(loader.dataset),
        "batch_size": _batch_size(loader),
        "workers": loader.num_workers,
        "prefetch": loader.prefetch_factor,
        "pin_memory": bool(loader.pin_memory),
        "iterable": source.iterable,
        "items": "samples" if source.collates else "batches",
        "collate": getattr(collate, "__qualname__", type(collate).__qualname__),
        "start_method": getattr(context, "_name", "") if context is not None else "",
        "cuda": devices.available(),
    }


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None


def _batch_size(loader: Any) -> int | None:
    size = loader.batch_size or getattr(loader.batch_sampler, "batch_size", None)
    return int(size) if size else None


def _counter(loader: Any, source: Source) -> Callable[[Any], int]:
    """How many items a batch of this loader is."""
    size = _batch_size(loader)

    def count(batch: Any) -> int:
        if not source.collates:
            return 1
        return _first_length(batch) or size or 1

    return count


def _first_length(batch: Any) -> int | None:
    while isinstance(batch, (list, tuple, dict)) and batch:
        batch = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
    shape = getattr(batch, "shape", None)
    return int(shape[0]) if shape is not None and len(shape) else None


def _samples(source: Source, emit: Emit, budget: float) -> Cost:
    """The whole of a sample, one after the other in this process."""
    first, later = read(source, seconds=limits.READING * budget)
    emit(part="sample", count=later.count, first_s=first.wall_s / max(first.count, 1), **later.per_item())
    return later


def _stages(source: Source, emit: Emit, budget: float, read_cost: Cost) -> None:
    """What a sample goes through, each stage again by itself on the inputs it had."""
    tracer = Tracer(elements_of(source.dataset))
    traced = _trace(source, tracer, limits.TRACED_SAMPLES, seconds=limits.TRACING * budget)
    if not traced:
        return
    total = max((stage.traced_s + stage.reads_s for stage in tracer.stages.values()), default=0.0)
    large = [
        (key, stage)
        for key, stage in tracer.stages.items()
        if not _is_root(stage) and (stage.element or stage.traced_s + stage.reads_s >= limits.LEAST_SHARE * total)
    ]
    large = sorted(large, key=lambda item: -item[1].traced_s - item[1].reads_s)[: limits.MOST_STAGES]
    tracer.keep = {key for key, _ in large}
    means = {key: (stage.calls / traced, stage.traced_s / traced, stage.reads_s / traced) for key, stage in large}
    _trace(source, tracer, limits.TRACED_SAMPLES, seconds=limits.TRACING * budget)
    # The hook makes code in plain Python several times as slow: what cannot be called again is scaled back by that.
    slowed = max(1.0, total / traced / max(read_cost.taken_s / max(read_cost.count, 1), 1e-9))
    seconds = limits.REPLAYING * budget / max(len(large), 1)
    for key, stage in sorted(large, key=lambda item: item[1].order):
        calls, traced_s, reads_s = means[key]
        cost = replay(stage, seconds=min(seconds, 1.0))
        emit(part="stage", **_stage_facts(stage, cost, calls, traced_s / slowed, reads_s))


def _stage_facts(stage: Stage, cost: Cost | None, calls: float, cpu_s: float, reads_s: float) -> dict[str, Any]:
    """Seconds a sample of a stage, all its calls in a sample together."""
    facts: dict[str, Any] = {
        "name": stage.name,
        "file": stage.file,
        "line": stage.line,
        "depth": stage.depth,
        "order": stage.order,
        "calls": calls,
        "reads_s": reads_s,
    }
    if cost is not None:
        return facts | {"replayed": True} | {name: value * calls for name, value in cost.per_item().items()}
    times = {"taken_s": cpu_s + reads_s, "cpu_s": cpu_s, "blocked_s": reads_s}
    return facts | {"replayed": False, "why": stage.why_not or "it was not called again"} | times


def _trace(source: Source, tracer: Tracer, samples: int, *, seconds: float) -> int:
    """Fetch some samples under the hook; how many there were."""
    done = 0
    ends = time.perf_counter() + seconds
    while done < samples and (time.perf_counter() < ends or not done):
        function, argument, items = source.next_fetch()
        try:
            tracer.watch(function, argument)
        except StopIteration:
            break
        done += items
    return done


def _is_root(stage: Stage) -> bool:
    """The function that gives a sample is the sample, not a stage of it."""
    return stage.name.rpartition(".")[2] in ("__getitem__", "__getitems__", "__iter__", "__next__") and not stage.depth


def _batches(source: Source, emit: Emit, budget: float) -> None:
    """Collate, pin, transfer: on samples and batches that are there."""
    size = (_batch_size(source.loader) or 1) if source.collates else 1
    ends = time.perf_counter() + limits.COLLECTING * budget
    samples: list[Any] = []
    while len(samples) < size and (time.perf_counter() < ends or not samples):
        samples += source.fetch(Cost())
    inputs = samples[:size] if source.collates else samples[0]
    items = len(samples[:size])
    collate = source.loader.collate_fn
    cost = Cost()
    batch = collate(inputs)
    ends = time.perf_counter() + limits.COLLATING * budget
    while cost.count < 5 * items or (time.perf_counter() < ends and cost.count < 200 * items):
        batch = timed(cost, items, collate, inputs)
        if cost.wall_s > 0.1 * budget:
            break
    emit(part="collate", items=items, **cost.per_item())
    if not devices.available():
        return
    if source.loader.pin_memory:
        emit(part="pin", items=items, **devices.pin(batch, times=limits.COPIES, items=items).per_item())
    emit(part="transfer", items=items, **devices.transfer(batch, times=limits.COPIES, items=items).per_item())

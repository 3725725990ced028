"""What the main loop's data loader costs: a batch made, in which process, computing or waiting, and an epoch begun."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from unstall.benchmark.reader import ProcessRecording, Spans, held_s, starts
from unstall.benchmark.steps import Loop
from unstall.child.layout import CPU_KNOWN, ERROR, NETWORK
from unstall.child.seams.loader import COLLATE, EPOCH, FETCH, NEXT
from unstall.child.seams.network import SOCKET
from unstall.records.measurements import LoaderMeasurement


def measure(main: ProcessRecording, processes: Sequence[ProcessRecording], loop: Loop) -> LoaderMeasurement | None:
    """The loader that feeds the loop, or None when none does."""
    config = _config(main, loop)
    if config is None:
        return None
    begin, end = loop.starts[0], loop.ends[-1]
    workers = int(config.get("num_workers") or 0)
    nexts = _within(main.named(NEXT.event, main_only=False), begin, end)
    nexts = nexts[nexts["flags"] & ERROR == 0]
    epochs = _within(main.named(EPOCH.event, main_only=False), begin, end)
    servers = [process for process in processes if process.parent == main.pid] if workers else [main]
    return LoaderMeasurement(
        workers=workers,
        batch_size=config.get("batch_size"),
        prefetch_factor=config.get("prefetch_factor"),
        persistent_workers=bool(config.get("persistent_workers")),
        pin_memory=bool(config.get("pin_memory")),
        iterable=bool(config.get("iterable")),
        in_order=config.get("in_order") is not False,
        dataset=str(config.get("dataset", "")),
        collate=str(config.get("collate", "")),
        collate_at=tuple(config.get("collate_at", ("", 0))),
        samples_at=tuple(config.get("samples_at", ("", 0))),
        batches_per_step=_per_regular_step(nexts, loop),
        start_s=_epoch_start(epochs, nexts, workers) / len(loop),
        epochs=len(epochs),
        **_of_a_batch(servers, begin, end),
    )


def _of_a_batch(servers: Sequence[ProcessRecording], begin: float, end: float) -> dict[str, float]:
    """The fields of the measurement about what a batch costs its makers; none where none was made."""
    fetches = [_within(process.named(FETCH.event, main_only=False), begin, end) for process in servers]
    count = sum(len(spans) for spans in fetches)
    if not count:
        return {}
    collates = [_within(process.named(COLLATE.event, main_only=False), begin, end) for process in servers]
    sockets = [_sockets(process, begin, end) for process in servers]
    service_s = sum(_seconds(spans) for spans in fetches) / count
    return {
        "service_s": service_s,
        "service_cpu_s": sum(_cpu(spans) for spans in fetches) / count,
        "service_blocked_s": sum(_blocked(spans) for spans in fetches) / count,
        "service_network_s": min(sum(_seconds(spans, "self") for spans in sockets) / count, service_s),
        "network_bytes": sum(_bytes(spans) for spans in sockets) / count,
        "collate_s": sum(_seconds(spans) for spans in collates) / count,
    }


def _per_regular_step(nexts: Spans, loop: Loop) -> float:
    """Batches in a step, those of validation left out."""
    regular = _regular(loop)
    return float(regular[loop.step_of(nexts)].sum() / regular.sum())


def _regular(loop: Loop) -> npt.NDArray[np.bool_]:
    """The steps that are not at an epoch's end, where there are such."""
    return ~loop.at_boundary if (~loop.at_boundary).any() else np.ones(len(loop), dtype=bool)


def _config(main: ProcessRecording, loop: Loop) -> dict[str, Any] | None:
    """The facts of the loader that gives the loop most of its batches; None where none is opened until half-way."""
    configs = main.facts.get("loader", [])
    epochs = main.named(EPOCH.event, main_only=False)
    before = epochs[starts(epochs) <= (loop.starts[0] + loop.ends[-1]) / 2]
    if not configs or not len(before):
        return None
    nexts = main.named(NEXT.event, main_only=False)
    step = loop.step_of(nexts)
    givers = _givers(epochs, nexts)[(step >= 0) & _regular(loop)[step] & (nexts["flags"] & ERROR == 0)]
    addresses, counts = np.unique(givers[givers != 0], return_counts=True)
    address = int(addresses[np.argmax(counts)] if len(addresses) else before["arg"][0])
    by_address = {int(fact["id"]): fact for fact in reversed(configs)}
    return by_address.get(address, configs[0])


def _givers(epochs: Spans, nexts: Spans) -> npt.NDArray[np.uint64]:
    """The address of the loader that gave each batch, 0 for those that were asked for before any epoch began.

    An epoch begins with an iterator, which is told by its address: the next that is asked for a batch. Another one may
    be at that address later.
    """
    first = np.searchsorted(nexts["start"], epochs["start"])
    loaders, first = epochs["arg"][first < len(nexts)], first[first < len(nexts)]
    _, iterator = np.unique(nexts["arg"], return_inverse=True)
    asked = iterator * len(nexts) + np.arange(len(nexts))  # one iterator's after another's, each in the order of time
    order = np.argsort(asked[first], kind="stable")
    latest = np.searchsorted(asked[first][order], asked, side="right") - 1
    begun = latest >= 0
    begun[begun] = iterator[first][order][latest[begun]] == iterator[begun]
    givers = np.zeros(len(nexts), dtype=np.uint64)
    givers[begun] = loaders[order][latest[begun]]
    return givers


def _epoch_start(epochs: Spans, nexts: Spans, workers: int) -> float:
    """Seconds spent opening epochs: starting workers, and the first batch beyond what a batch usually waits."""
    if not len(epochs) or not len(nexts):
        return _seconds(epochs)
    usual = float(np.median(nexts["dur"])) / 1e9
    following = np.searchsorted(nexts["start"], epochs["start"])
    first = nexts[following[following < len(nexts)]]
    waits = np.clip(first["dur"] / 1e9 - usual, 0, None) if workers else np.zeros(1)
    return _seconds(epochs) + float(waits.sum())


def _within(spans: Spans, begin: float, end: float) -> Spans:
    began = starts(spans)
    return spans[(began >= begin) & (began < end)]


def _seconds(spans: Spans, field: str = "dur") -> float:
    return float(spans[field].sum()) / 1e9


def _cpu(spans: Spans) -> float:
    known = spans["flags"] & CPU_KNOWN != 0
    if not known.any():
        return _seconds(spans)
    return float(spans["cpu"][known].sum()) / 1e7 / max(known.mean(), 1e-9)


def _blocked(spans: Spans) -> float:
    known = spans["flags"] & CPU_KNOWN != 0
    if not known.any():
        return 0.0
    timed = spans[known]
    return float(np.clip(timed["dur"] / 1e9 - held_s(timed), 0, None).sum() / known.mean())


def _sockets(process: ProcessRecording, begin: float, end: float) -> Spans:
    spans = _within(process.spans[np.isin(process.spans["name"], process.of(SOCKET))], begin, end)
    return spans if len(spans) and (spans["flags"] & NETWORK).any() else spans[:0]


def _bytes(spans: Spans) -> float:
    return float(spans["arg"][spans["flags"] & NETWORK != 0].astype(np.float64).sum())

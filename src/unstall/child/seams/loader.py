"""torch.utils.data: the wait for each batch, the start of an epoch, and, wherever they run, fetch and collate."""

from __future__ import annotations

import sys
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from unstall.child import finding, reading
from unstall.child.recording import native, wrap, wrap_attribute
from unstall.child.user_files import is_program_file
from unstall.records.vocabulary import DATA_WAIT, Seam, Tick

if TYPE_CHECKING:
    from unstall.child.seams import Listener

NEXT = Seam(
    "~data.next",
    phase=DATA_WAIT.name,
    counts=Tick.DATA,
    frames=(
        (r"torch[/\\]utils[/\\]data[/\\]dataloader\.py$", r"__next__|__iter__|_next_data|_get_iterator"),
        (r"spdl[/\\]pipeline[/\\]_pipeline\.py$|torchdata[/\\]nodes[/\\]loader\.py$", r"get_item|next"),
        (r"ray[/\\]data[/\\]_internal[/\\]block_batching[/\\]iter_batches\.py$", r"_iter_batches"),
    ),
)
EPOCH = Seam("~data.iter", phase=DATA_WAIT.name, counts=Tick.OTHER)
FETCH = Seam(
    "~data.fetch",
    phase=DATA_WAIT.name,
    stub="data",
    frames=((r"torch[/\\]utils[/\\]data[/\\]_utils[/\\]", r".*"),),
)
COLLATE = Seam("~data.collate", phase=DATA_WAIT.name)


def _install_loader(module: Any) -> None:
    wrap_attribute(module._BaseDataLoaderIter, "__next__", NEXT)
    wrap_attribute(module.DataLoader, "__iter__", EPOCH)


def _install_fetch(module: Any) -> None:
    base = module._BaseDatasetFetcher
    original = base.__init__

    def __init__(self: Any, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> None:
        original(self, dataset, auto_collation, wrap(collate_fn, COLLATE), drop_last)

    base.__init__ = __init__
    for fetcher in base.__subclasses__():
        if "fetch" in fetcher.__dict__:
            wrap_attribute(fetcher, "fetch", FETCH)


def _find_fetch() -> list[FunctionType]:
    """What makes a batch, in the process that makes it."""
    module = "torch.utils.data._utils.fetch"
    owners = ("_MapDatasetFetcher", "_IterableDatasetFetcher")
    return [fetch for owner in owners for fetch in finding.members(module, "fetch", owner=owner)]


def _note_epoch(listener: Listener, count: int, loader: Any, _: Any) -> None:
    if count == 1:
        listener.emit_fact("loader", **_facts(loader))


_NAMED = (FunctionType, BuiltinFunctionType, MethodType, native.SpanFunction, type)
_PARTS = 5
"""Most datasets that one is looked through for, as a subset of a subset is."""
_SETTINGS = ("num_workers", "batch_size", "prefetch_factor", "persistent_workers", "pin_memory", "in_order")


def _facts(loader: Any) -> dict[str, Any]:
    held = reading.attributes(loader)
    dataset: Any = held.get("dataset")
    collate: Any = held.get("collate_fn")
    settings = {name: held.get(name) for name in _SETTINGS}
    return {
        "id": id(loader),
        **{name: value for name, value in settings.items() if type(value) in (int, bool, type(None))},
        "dataset": type(dataset).__qualname__,
        "iterable": issubclass(type(dataset), getattr(sys.modules.get("torch.utils.data"), "IterableDataset", ())),
        "collate": collate.__qualname__ if type(collate) in _NAMED else type(collate).__qualname__,
        "collate_at": _written_at(collate),
        "samples_at": _samples_at(dataset),
    }


def _samples_at(dataset: Any) -> tuple[str, int]:
    """File and line of the program's that makes a sample, in the dataset or in one that it is a part of."""
    for _ in range(_PARTS):
        place = reading.written_at(dataset, "__getitem__")
        if place["file"] and is_program_file(place["file"]):
            return place["file"], place["line"]
        dataset = reading.attributes(dataset).get("dataset")
    return "", 0


def _written_at(collate: Any) -> tuple[str, int]:
    """File and line of what makes a batch of samples: a function, a method, or an object that is called."""
    if type(collate) in _NAMED:
        place = reading.place_of(collate.__func__ if type(collate) is MethodType else collate)
    else:
        place = reading.written_at(collate, "__call__")
    return place["file"], place["line"]


SEAMS = (NEXT, EPOCH, FETCH, COLLATE)
FINDERS = {FETCH.stub: _find_fetch}
NOTES = {EPOCH.event: _note_epoch}
TARGETS = {
    "torch.utils.data.dataloader": _install_loader,
    "torch.utils.data._utils.fetch": _install_fetch,
}

"""torch.utils.data: the wait for each batch, the start of an epoch, and, wherever they run, fetch and collate."""

from __future__ import annotations

from typing import Any

from unstall.child.recording import DATA, OTHER, wrap, wrap_attribute


def _install_loader(module: Any) -> None:
    wrap_attribute(module._BaseDataLoaderIter, "__next__", "~data.next", kind=DATA)
    wrap_attribute(module.DataLoader, "__iter__", "~data.iter", kind=OTHER)


def _install_fetch(module: Any) -> None:
    base = module._BaseDatasetFetcher
    original = base.__init__

    def __init__(self: Any, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> None:
        original(self, dataset, auto_collation, wrap(collate_fn, "~data.collate"), drop_last)

    base.__init__ = __init__
    for fetcher in base.__subclasses__():
        if "fetch" in fetcher.__dict__:
            wrap_attribute(fetcher, "fetch", "~data.fetch")


TARGETS = {
    "torch.utils.data.dataloader": _install_loader,
    "torch.utils.data._utils.fetch": _install_fetch,
}

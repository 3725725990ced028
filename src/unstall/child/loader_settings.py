"""A DataLoader with other settings than the program gives it, whatever class the program's own has."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

_FOR_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout")
"""What torch refuses to a loader without workers."""
_COPIED = ("collate_fn", "timeout", "worker_init_fn", "generator", "multiprocessing_context", "pin_memory")


def override(module: Any, settings: dict[str, Any], applies: Callable[[dict[str, Any]], bool]) -> None:
    """From now on make loaders with these settings, where ``applies`` says so of the arguments that they were given.

    ``module``: ``torch.utils.data.dataloader``.
    """
    original = module.DataLoader.__init__
    signature = inspect.signature(original)

    def __init__(*args: Any, **kwargs: Any) -> None:
        arguments = signature.bind(*args, **kwargs).arguments
        self = arguments.pop("self")
        if applies(arguments):
            arguments = _allowed(arguments | settings)
        original(self, **arguments)

    __init__.__wrapped__ = original  # type: ignore[attr-defined]
    module.DataLoader.__init__ = __init__


def with_workers(loader: Any, workers: int) -> Any:
    """Another loader of the same data, with so many workers that stay from epoch to epoch."""
    from torch.utils.data import DataLoader, IterableDataset

    settings = {name: getattr(loader, name) for name in _COPIED}
    settings |= {"num_workers": workers, "prefetch_factor": loader.prefetch_factor or 2, "persistent_workers": True}
    settings["pin_memory"] = loader.pin_memory and bool(workers)
    if isinstance(loader.dataset, IterableDataset):
        settings |= {"batch_size": loader.batch_size, "drop_last": loader.drop_last}
    elif loader.batch_sampler is None:
        settings |= {"batch_size": None, "sampler": loader.sampler}
    else:
        settings["batch_sampler"] = loader.batch_sampler
    return DataLoader(loader.dataset, **_allowed(settings))


def _allowed(arguments: dict[str, Any]) -> dict[str, Any]:
    if arguments.get("num_workers"):
        return arguments
    return {name: value for name, value in arguments.items() if name not in _FOR_WORKERS}

"""Remedies at run time, with no change of the source: what a trial tries, and what ``--with remedies.toml`` sets.

``loader``: keywords of every map-style DataLoader; ``threads``: torch's intra-op threads; ``optimizer``: keywords of
every optimizer whose class takes them (``fused``, ``foreach``); ``gc_freeze``: leave what exists at the first step out
of garbage collections; ``flush_subnormals``: take subnormal numbers for zeros; ``keep_freed_memory``: the allocator
gives none back to the kernel.
"""

from __future__ import annotations

import gc
import inspect
from typing import Any

from unstall.child import allocator, trial


def targets(settings: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """Hooks for the settings that are there."""
    hooks: list[tuple[str, Any]] = []
    if settings.get("loader"):
        hooks.append(("torch.utils.data.dataloader", lambda module: _loader(module, settings["loader"])))
    if settings.get("threads"):
        hooks.append(("torch", lambda module: _threads(module, int(settings["threads"]))))
    if settings.get("optimizer"):
        hooks.append(("torch.optim", lambda module: _optimizers(module, settings["optimizer"])))
    if settings.get("gc_freeze"):
        hooks.append(("torch.optim.optimizer", _freeze))
    if settings.get("flush_subnormals"):
        hooks.append(("torch", lambda module: module.set_flush_denormal(True)))
    if settings.get("keep_freed_memory"):
        hooks.append(("torch", lambda module: allocator.keep_freed()))
    return hooks


def _loader(module: Any, keywords: dict[str, Any]) -> None:
    original = module.DataLoader.__init__

    def __init__(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
        if not isinstance(dataset, module.IterableDataset):
            kwargs.update(keywords)
            if not kwargs.get("num_workers"):
                kwargs.pop("persistent_workers", None)
                kwargs.pop("prefetch_factor", None)
        original(self, dataset, *args, **kwargs)

    module.DataLoader.__init__ = __init__


def _threads(module: Any, count: int) -> None:
    if not trial.is_helper():
        module.set_num_threads(count)
        module.set_num_threads = lambda count: None


def _optimizers(module: Any, keywords: dict[str, Any]) -> None:
    for name in dir(module):
        cls = getattr(module, name)
        if isinstance(cls, type) and issubclass(cls, module.Optimizer):
            accepted = {key: value for key, value in keywords.items() if key in inspect.signature(cls).parameters}
            if accepted:
                _preset(cls, accepted)


def _preset(cls: Any, keywords: dict[str, Any]) -> None:
    original = cls.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **{**keywords, **kwargs})

    cls.__init__ = __init__


def _freeze(module: Any) -> None:
    done = False

    def post(optimizer: Any, args: Any, kwargs: Any) -> None:
        nonlocal done
        if not done:
            done = True
            gc.freeze()

    module.register_optimizer_step_post_hook(post)

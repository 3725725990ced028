"""Let what the main process loads be loaded by a process of its own, as somebody will who has more cores.

A dataset that has started threads has none of them there, and what it is told later it never hears. With
``plan["start"]``, a method of ``multiprocessing``, the process is no fork, as on other systems: there a dataset is what
is left of it in a pickle. With ``plan["after"]`` it is, but of a main process that has loaded so many epochs itself.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from unstall.child import trial
from unstall.child.loader_settings import override, with_workers


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """The loaders of torch. ``plan["workers"]``: processes in place of none."""
    if trial.is_helper():
        return []
    workers = int(plan["workers"])
    if "after" in plan:
        return [("torch.utils.data.dataloader", lambda module: _load_beside_after(module, plan["after"], workers))]
    settings: dict[str, Any] = {"num_workers": workers}
    if "start" in plan:  # they take seconds to start: once is enough
        settings |= {"multiprocessing_context": plan["start"], "persistent_workers": True}
    return [("torch.utils.data.dataloader", lambda module: _load_beside(module, settings))]


def _load_beside(module: Any, settings: dict[str, Any]) -> None:
    override(module, settings, lambda arguments: not arguments.get("num_workers"))


def _load_beside_after(module: Any, epochs: int, workers: int) -> None:
    """Loaders of data that have been gone through so often in the main process have processes from then on."""
    original = module.DataLoader._get_iterator
    begun: Counter[int] = Counter()

    def _get_iterator(self: Any) -> Any:
        if self.num_workers:
            return original(self)
        begun[id(self.dataset)] += 1
        return original(self) if begun[id(self.dataset)] <= epochs else iter(with_workers(self, workers))

    module.DataLoader._get_iterator = _get_iterator

"""Let what the main process loads be loaded by a process of its own, as somebody will who has more cores.

A dataset that has started threads has none of them there, and what it is told later it never hears. With
``plan["start"]``, a method of ``multiprocessing``, the process is no fork, as on other systems: there a dataset is what
is left of it in a pickle.
"""

from __future__ import annotations

from typing import Any

from unstall.child import trial
from unstall.child.loader_settings import override


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """The loaders of torch. ``plan["workers"]``: processes in place of none."""
    if trial.is_helper():
        return []
    settings = {"num_workers": int(plan["workers"])}
    if "start" in plan:  # they take seconds to start: once is enough
        settings |= {"multiprocessing_context": plan["start"], "persistent_workers": True}
    return [("torch.utils.data.dataloader", lambda module: _load_beside(module, settings))]


def _load_beside(module: Any, settings: dict[str, Any]) -> None:
    override(module, settings, lambda arguments: not arguments.get("num_workers"))

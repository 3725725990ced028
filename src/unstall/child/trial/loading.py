"""Let what the main process loads be loaded by a process of its own, as somebody will who has more cores.

A dataset that has started threads has none of them there, and what it is told later it never hears.
"""

from __future__ import annotations

from typing import Any

from unstall.child import trial
from unstall.child.loader_settings import override


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """The loaders of torch. ``plan["workers"]``: processes in place of none."""
    if trial.is_helper():
        return []
    return [("torch.utils.data.dataloader", lambda module: _load_beside(module, int(plan["workers"])))]


def _load_beside(module: Any, workers: int) -> None:
    override(module, {"num_workers": workers}, lambda arguments: not arguments.get("num_workers"))

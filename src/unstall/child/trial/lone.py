"""Let the last batch of each epoch have one sample, as data of another length have: ``squeeze()`` takes its dimension
away, statistics over it are none.

``changed_data.json`` says that there was such a batch: a program that makes its batches itself has none.
"""

from __future__ import annotations

import json
import os
from typing import Any

from unstall.child import trial


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """What makes batches of samples for torch's loaders."""
    if trial.is_helper():
        return []
    return [("torch.utils.data.sampler", lambda module: _leave_one(module, os.path.join(folder, "changed_data.json")))]


def _leave_one(module: Any, told: str) -> None:
    every = module.BatchSampler.__iter__

    def __iter__(self: Any) -> Any:
        batch: list[Any] = []
        for after in every(self):
            if batch:
                yield batch
            batch = after
        if len(batch) > 1 and not os.path.exists(told):
            with open(told, "w") as file:
                json.dump({"item": "of the last batch", "is_text": False}, file)
        if batch:
            yield batch[:1]

    module.BatchSampler.__iter__ = __iter__

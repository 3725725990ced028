"""Let each batch be made before the one before it is used, as a loader that reads ahead does, or who holds two.

A batch that is put into memory which the next one takes again is another by then.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from unstall.child import trial


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """The loaders of torch."""
    return [] if trial.is_helper() else [("torch.utils.data.dataloader", _read_ahead)]


def _read_ahead(module: Any) -> None:
    base = module._BaseDataLoaderIter
    original, reset = base.__next__, base._reset

    def __next__(self: Any) -> Any:
        ready: deque[Any] = self.__dict__.setdefault("_made_ahead", deque())
        try:
            while len(ready) < 2:
                ready.append(original(self))
        except StopIteration:
            if not ready:
                raise
        return ready.popleft()

    def _reset(self: Any, *args: Any, **kwargs: Any) -> None:
        self.__dict__.pop("_made_ahead", None)  # of an epoch that was left early
        reset(self, *args, **kwargs)

    base.__next__, base._reset = __next__, _reset

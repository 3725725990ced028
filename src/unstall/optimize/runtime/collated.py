"""Collates of loaders whose dataset may index a whole batch at once."""

from __future__ import annotations

from typing import Any

import torch


def _collated(samples: Any) -> Any:
    """Torch's own collate; a batch that was indexed at once needs it no more."""
    collated = getattr(samples, "collated", None)
    return torch.utils.data.default_collate(samples) if collated is None else collated()


class _OwnCollate:
    """A collate of the program's own, which is given a list of samples as ever."""

    def __init__(self, collate: Any) -> None:
        self.collate = collate

    def __call__(self, samples: Any) -> Any:
        return self.collate(list(samples) if hasattr(samples, "collated") else samples)

"""The collate of a loader whose dataset may index a whole batch at once."""

from __future__ import annotations

from typing import Any

import torch


def _collated(samples: Any) -> Any:
    """Torch's own collate; a batch that was indexed at once needs it no more."""
    collated = getattr(samples, "collated", None)
    return torch.utils.data.default_collate(samples) if collated is None else collated()

"""Rows that each sample has as a Python number."""

from __future__ import annotations

from typing import Any

import torch


def _numbers(rows: Any) -> Any:
    """Rows as torch's own collate has Python's numbers: float64, int64 or bool."""
    rows = torch.as_tensor(rows)
    if rows.is_floating_point():
        return rows.double()
    return rows if rows.dtype is torch.bool else rows.long()

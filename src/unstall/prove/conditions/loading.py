"""Whether the changed program does the same where a process of its own loads what the main one does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PLAN: Mapping[str, Any] = {"loading": {"workers": 1}}
WHERE = " where a loader worker makes the batches"

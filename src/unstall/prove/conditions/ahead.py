"""Whether the changed program does the same where each batch is made before the one before it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PLAN: Mapping[str, Any] = {"ahead": {}}
WHERE = " where each batch is made before the one before it is used"

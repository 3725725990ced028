"""Start the program in another, empty working folder: ``plan["folder"]``. Helpers begin where it is then."""

from __future__ import annotations

import os
from typing import Any


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """Nothing is watched."""
    if not os.path.exists(plan["folder"]):  # else the program has begun there
        os.makedirs(plan["folder"])
        os.chdir(plan["folder"])
    return []

"""The published JSON schema of a report, version 1."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) that every report satisfies."""
    path = files("unstall.report").joinpath("report.schema.json")
    return json.loads(path.read_text(encoding="utf-8"))

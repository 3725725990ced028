"""Whether the changed program does the same where what loads its batches is no fork of the main process.

So it is on macOS and Windows, and from Python 3.14 on (``forkserver``): a dataset is what is left of it in a pickle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PLAN: Mapping[str, Any] = {"loading": {"workers": 1, "start": "spawn"}}
WHERE = " where a loader worker that is no fork makes the batches"

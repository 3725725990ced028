"""Whether the changed program does the same where a loader worker is forked once the main process has used its data.

So it is where somebody looks at a batch before the training begins. Threads that a dataset has started by then are not
there in the worker, and a lock that one of them holds is never released.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PLAN: Mapping[str, Any] = {"loading": {"workers": 1, "after": 1}}
WHERE = " where a loader worker makes the batches after the first epoch"

"""The lines of a loop that copy to a device, or wait for one. Runs in the user's process.

They are looked at while the first steps are: `model.to(device)` before the loop is another matter, and so many calls
would make every step slower.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from unstall.child import reading
from unstall.child.seams import cuda

Path = tuple[tuple[str, str, int, int], ...]

_MOST = 16


def is_one(name: str) -> bool:
    """Whether a seam's event is a copy to a device, or a wait for one."""
    return cuda.TRANSFER.covers(name) or cuda.SYNC.covers(name)


class DeviceCalls:
    """Told of each such call in the first steps."""

    def __init__(self) -> None:
        self._weights: dict[tuple[str, Path], int] = defaultdict(int)

    def called(self, name: str, first: Any, second: Any, path: Path) -> None:
        """A call by this way, innermost first, with these arguments."""
        weight = _weight(name, first, second)
        if weight:
            self._weights[name, path] += weight

    def tell(self, emit_fact: Callable[..., None]) -> None:
        """Write down who makes them: of copies first those of the most bytes, of waits those that are made most."""
        for name, path in sorted(self._weights, key=lambda key: -self._weights[key])[:_MOST]:
            emit_fact("site", name=name, stack=path, grad=True)
        self._weights.clear()


def _weight(name: str, first: Any, second: Any) -> int:
    """Bytes that are copied, or a wait; 0 for what only the host does: `.to(dtype)`, `.item()` of its own tensors."""
    torch = sys.modules["torch"]
    is_copy = cuda.TRANSFER.covers(name)
    if not isinstance(first, torch.Tensor):
        return int(not is_copy)
    if type(first) not in (torch.Tensor, torch.nn.Parameter):
        return 0  # of a class that may answer in Python
    with reading.unobserved():
        on_host = first.device.type == "cpu"
        if not is_copy:
            return int(not on_host)
        return first.numel() * first.element_size() if on_host and not isinstance(second, torch.dtype) else 0

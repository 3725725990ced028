"""What a patch brings along to make an object of a library once: by the plain values that it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _MadeOnce:
    """A function that makes an object, and gives the same one again for the same plain values.

    What it is given else, a tensor or a list, may be another inside though it is the same: then it makes a new one.
    """

    _plain = (int, float, str, bytes, bool, type(None))
    _most = 64

    def __init__(self, make: Callable[..., Any]):
        self._make = make
        self._made: dict[Any, Any] = {}

    def __call__(self, *given: Any) -> Any:
        if not all(type(value) in self._plain for value in given):
            return self._make(*given)
        key = tuple((type(value), value) for value in given)  # 1 is not 1.0, nor True
        if key not in self._made:
            if len(self._made) >= self._most:
                self._made.clear()
            self._made[key] = self._make(*given)
        return self._made[key]

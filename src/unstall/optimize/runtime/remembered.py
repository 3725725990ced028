"""Remembers what a pure function gave for lists that the program never changes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class _Remembered:
    """Remembers a function's results, up to a gigabyte of arrays.

    ``lists``: places of arguments that are known by which list it is, as the program changes none of these.
    """

    def __init__(self, function: Callable[..., Any], lists: tuple[int, ...]) -> None:
        self.function, self.lists, self.bytes = function, lists, 0
        self.results: dict[Any, Any] = {}
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any) -> Any:
        key = tuple(
            [
                (list, id(value)) if place in self.lists and isinstance(value, list) else (type(value), value)
                for place, value in enumerate(args)
            ]
        )
        if key in self.results:
            return self.results[key][1]
        result = self.function(*args)
        parts = result if isinstance(result, (tuple, list)) else [result]
        self.bytes += 1000 + sum([getattr(part, "nbytes", 0) for part in parts])
        if self.bytes < 1 << 30:
            self.results[key] = args, result  # the lists are held: no other one gets their id
        return result

"""Remembers what a pure function gave, also for long tuples, and lists that the program never changes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class _Remembered:
    """Remembers a function's results, up to a gigabyte of arrays and arguments.

    ``lists``: places of arguments that are known by which list it is, as the program changes none of these. A long
    tuple is known by which one it is too, as asking for its value goes through all of it. With an argument that has no
    value to look up, the function is called as it is.
    """

    def __init__(self, function: Callable[..., Any], lists: tuple[int, ...] = ()) -> None:
        self.function, self.lists, self.bytes = function, lists, 0
        self.results: dict[Any, Any] = {}
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **named: Any) -> Any:
        key = tuple(
            [
                (type(value), id(value))
                if (type(value) is tuple and len(value) > 64) or (place in self.lists and isinstance(value, list))
                else (type(value), value)
                for place, value in [*enumerate(args), *sorted(named.items())]
            ]
        ) + tuple(sorted(named))
        try:
            if key in self.results:
                return self.results[key][2]
            for value in args + tuple(named.values()):
                if type(value) is tuple:
                    hash(value)  # what it holds has values, too, and so does not change
        except TypeError:
            return self.function(*args, **named)
        result = self.function(*args, **named)
        for part in [*(result if isinstance(result, (tuple, list)) else [result]), *args, *named.values()]:
            self.bytes += getattr(part, "nbytes", 0) or (8 * len(part) if hasattr(part, "__len__") else 100)
        if self.bytes < 1 << 30:
            self.results[key] = args, named, result  # the arguments are held: nothing else gets their id
        return result

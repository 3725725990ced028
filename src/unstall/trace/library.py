"""The library in C, ``native/scan.h``, called by ctypes: without the GIL, and the same for every Python."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

_POINTER, _SIZE, _INT64 = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "scanner_new": (_POINTER,),
    "scanner_free": (None, _POINTER),
    "scanner_add_key": (ctypes.c_bool, _POINTER, ctypes.c_bool, ctypes.c_char_p, _SIZE, ctypes.c_uint8),
    "scanner_add_column": (ctypes.c_bool, _POINTER, _POINTER),
    "scanner_add_route": (ctypes.c_bool, _POINTER, ctypes.c_int8, ctypes.c_int8, ctypes.c_uint8),
    "scanner_scan": (ctypes.c_int, _POINTER, _POINTER, _SIZE, _POINTER),
    "scanner_column": (_POINTER, _POINTER, _SIZE, _POINTER),
    "scanner_drop_column": (None, _POINTER, _SIZE),
    "scanner_strings": (_SIZE, _POINTER, ctypes.c_int, _POINTER, _POINTER),
    "scanner_count": (ctypes.c_uint64, _POINTER, ctypes.c_int),
    "scanner_events": (ctypes.c_uint64, _POINTER, _SIZE),
    "nest": (ctypes.c_bool, _SIZE, _POINTER, _POINTER, _POINTER, _SIZE, _INT64, ctypes.c_int, _POINTER),
    "longest_paths": (ctypes.c_bool, _SIZE, _SIZE, _POINTER, _POINTER, _POINTER, _POINTER, _POINTER),
}
"""Result and parameters of each function."""


def library() -> Any:
    """The library's functions; None where it was not built, for want of a compiler."""
    spec = find_spec("unstall.trace._scan")
    return _load(spec.origin) if spec and spec.origin else None


@cache
def _load(path: str) -> ctypes.CDLL:
    loaded = ctypes.CDLL(path)
    for name, (result, *parameters) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, parameters
    return loaded


def address(array: np.ndarray[Any, Any], dtype: type[np.generic], length: int) -> int:
    """Where the items of an array lie, for a function in C that takes so many of this type."""
    if array.dtype != dtype or array.shape != (length,) or not array.flags.c_contiguous:
        raise ValueError(f"an array of {length} {dtype.__name__}, one after the other, is needed")
    return int(array.ctypes.data)

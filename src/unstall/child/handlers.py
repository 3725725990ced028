"""Whose exception is it: one that a signal handler of the program's raises comes up in whatever code runs just then."""

from __future__ import annotations

import signal
from types import TracebackType
from typing import Any


def raised(error: BaseException) -> bool:
    """Whether a signal handler raised it. It is the program's then, and must not be caught by code of ours."""
    handlers = [_code(signal.getsignal(number)) for number in signal.valid_signals()]
    codes = {code for code in handlers if code is not None}
    at: TracebackType | None = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code in codes:
            return True
        at = at.tb_next
    return False


def _code(handler: Any) -> Any:
    """Of a function, a method, a partial, or an object that can be called; None for what is not written in Python."""
    if not callable(handler):
        return None
    while hasattr(handler, "func"):
        handler = handler.func
    code = getattr(handler, "__code__", None)
    return code if code is not None else getattr(type(handler).__call__, "__code__", None)

"""Amounts as people type them: ``5%``, ``20m``, ``2GB``, ``2.5/h``, and the option types made of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import click

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_BYTES = {"": 1.0, "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z%]*)\s*", re.IGNORECASE)


def share(text: str) -> float:
    """``5%`` or ``0.05``: a share of one, above 0."""
    number, unit = _split(text)
    if unit not in ("", "%") or number <= 0:
        raise click.BadParameter(f"{text!r} is not a share: write it as 5% or 0.05")
    value = number / 100 if unit == "%" else number
    if value >= 1:
        raise click.BadParameter(f"{text!r} is more than 1: write five per cent as 5% or 0.05")
    return value


def seconds(text: str) -> float:
    """``90``, ``90s``, ``20m``, ``2h``, ``30d``: a duration in seconds, above 0."""
    number, unit = _split(text)
    if unit not in _SECONDS or number <= 0:
        raise click.BadParameter(f"{text!r} is not a duration: write it as 90s, 20m, 2h or 30d")
    return number * _SECONDS[unit]


def size(text: str) -> int:
    """``500MB``, ``2GB``: bytes."""
    number, unit = _split(text)
    if unit not in _BYTES:
        raise click.BadParameter(f"{text!r} is not a size: write it as 500MB or 2GB")
    return round(number * _BYTES[unit])


def hourly(text: str) -> float:
    """``2.5/h`` or ``2.5``: what an hour costs, in whatever currency."""
    number, unit = _split(text.strip().removesuffix("/h").removesuffix("/hour"))
    if unit or number <= 0:
        raise click.BadParameter(f"{text!r} is not a price: write what an hour of the machine costs as 2.5/h")
    return number


def _split(text: str) -> tuple[float, str]:
    match = _AMOUNT.fullmatch(text)
    if not match:
        return math.nan, "?"
    return float(match[1]), match[2].lower()


class Amount(click.ParamType):
    """An option that takes an amount."""

    def __init__(self, name: str, parse: Callable[[str], float]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        return self._parse(value) if isinstance(value, str) else value


SHARE, TIME, SIZE, PRICE = (
    Amount(name, parse) for name, parse in (("share", share), ("time", seconds), ("size", size), ("price", hourly))
)

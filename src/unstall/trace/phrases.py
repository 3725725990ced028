"""Figures of a trace as the patterns' evidence words them."""

from __future__ import annotations

from unstall.text.units import number, seconds


def ns(nanoseconds: float) -> str:
    """A duration: "3.2 ms"."""
    return seconds(nanoseconds / 1e9)


def counted(count: float, noun: str, plural: str = "") -> str:
    """A count and its noun: "1 kernel", "2.5 copies"."""
    shown = f"{count:,}" if isinstance(count, int) else number(count)
    return f"{shown} {noun if shown == '1' else plural or noun + 's'}"


def short(name: str, most: int = 60) -> str:
    """A kernel's or operator's name without template arguments and return type, and not endless."""
    name = name.removeprefix("void ").replace("(anonymous namespace)::", "").replace("at::native::", "")
    head = name.split("<", 1)[0] if not name.startswith("<") else name
    head = head.split("(", 1)[0] or name
    return head if len(head) <= most else head[: most - 1] + "…"

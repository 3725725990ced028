"""Names for what a patch adds."""

from __future__ import annotations

from collections.abc import Collection


def fresh_name(wanted: str, taken: Collection[str]) -> str:
    """The name, with a number where it is taken."""
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name

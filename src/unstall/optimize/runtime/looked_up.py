"""Whether a value is in a list that only grows: looked up in a set beside it."""

from __future__ import annotations

from typing import Any, ClassVar


class _LookedUp:
    """By the identity of a list: [the list, the set of its first items, how many these are, the last of them]."""

    sets: ClassVar[dict[int, Any]] = {}

    @classmethod
    def holds(cls, value: Any, items: Any) -> bool:
        """``value in items``; for a long list of plain values by a set, which is told what was appended since."""
        if type(items) is not list or len(items) < 64 or not cls._is_plain(value):
            return value in items
        known = cls.sets.get(id(items))
        if known is None:
            while len(cls.sets) >= 16:
                cls.sets.pop(next(iter(cls.sets)))
            known = cls.sets[id(items)] = [items, set(), 0, None]  # holds the list: no other one gets its identity
        _, seen, count, last = known
        if count > len(items) or (count and items[count - 1] is not last):
            seen.clear()
            count = 0
        added = items[count:] if count < len(items) else []
        if not all(map(cls._is_plain, added)):
            return value in items
        seen.update(added)
        known[2:] = len(items), items[-1]
        return value in seen

    @classmethod
    def _is_plain(cls, value: Any) -> bool:
        """Whether a value is equal to those of the same hash, and stays so."""
        if type(value) is tuple:
            return all(map(cls._is_plain, value))
        return value is None or type(value) in (bytes, str, int, bool, float)

"""Whether a value is in a list that only grows: looked up in a set beside it."""

from __future__ import annotations

from typing import Any, ClassVar


class _LookedUp:
    """By the identity of a list: [the list, the set of its first items, how many these are, the last of them]."""

    sets: ClassVar[dict[int, Any]] = {}
    plain: ClassVar[frozenset[type]] = frozenset((bytes, str, int, bool, float, type(None)))
    """Kinds of values that are equal to those of the same hash, and stay so."""

    @classmethod
    def holds(cls, value: Any, items: Any) -> bool:
        """``value in items``; for a long list of plain values by a set, which is told what was appended since."""
        if type(items) is not list or len(items) < 64 or not (type(value) in cls.plain or cls._is_plain(value)):
            return value in items
        known = cls.sets.get(id(items))
        if known is None:
            while len(cls.sets) >= 16:
                cls.sets.pop(next(iter(cls.sets)))
            known = cls.sets[id(items)] = [items, set(), 0, None]  # holds the list: no other one gets its identity
        seen, count = known[1], known[2]
        if count > len(items) or (count and items[count - 1] is not known[3]):
            seen.clear()
            count = 0
        while count < len(items):
            item = items[count]
            if not (type(item) in cls.plain or cls._is_plain(item)):
                return value in items
            seen.add(item)
            count += 1
            known[2], known[3] = count, item
        return value in seen

    @classmethod
    def _is_plain(cls, value: Any) -> bool:
        """Whether a value is plain, or a tuple of such."""
        return type(value) in cls.plain or (type(value) is tuple and all(map(cls._is_plain, value)))

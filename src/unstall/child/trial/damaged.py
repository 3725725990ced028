"""Let one sample of the program's data be another: damaged, or far longer than the others.

What the program then does is its own matter: an error, or other numbers. ``plan["which"]``: of which dataset, of
those that have such samples, the first is 0; one of each where it is null. ``plan["kind"]``: ``spoiled``, a text has a
character more at its end, and numbers are none any more; ``cut``, it has one less; ``long`` and ``longest``, a text is
there many times over; ``short``, its first word only; ``between``, the last whole number of it is a half more;
``joined``, its most frequent sign is missing once; ``foreign``, such a sign is within a word, too, two letters of it
are none of English, one of them none of Latin-1, and a blank is two; ``more``, it has what the next ones have a list
of, boxes say, beside its own. It is an item in the middle of the first list, array or tensor that a dataset is made of,
or, where none is, has when it is given to a loader; what it was is said in ``changed_data.json``, for what is made of
other data cannot be compared, and whether it has a text.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from unstall.child import trial
from unstall.child.trial import changed_data

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TIMES, _MOST_TIMES, _MORE = 16, 200, 3
_LETTERS = re.compile("[A-Za-z]{2}")


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """What datasets are made of, just before they are."""
    if trial.is_helper():
        return []
    data = DamagedData(plan["kind"], plan.get("which", 0), folder)
    return [
        ("torch.utils.data.dataset", lambda module: changed_data.before_datasets(module, data)),
        ("torch.utils.data.dataloader", lambda module: changed_data.before_loaders(module, data)),
    ]


class DamagedData(changed_data.ChangedData):
    """An item in the middle of such a value is another."""

    def __init__(self, kind: str, left: int | None, folder: str):
        super().__init__(left, folder)
        self.kind = kind

    def is_meant(self, value: Any) -> bool:
        """Whether it is a list of items that can be damaged so, or numbers."""
        if isinstance(value, list) and len(value) >= changed_data.LEAST:
            return self._damaged(value) is not value[len(value) // 2]
        return self.kind == "spoiled" and _has_numbers(value)

    def change(self, value: Any, values: list[Any]) -> None:
        """Put another item in its middle."""
        place = len(value) // 2
        item = value[place]
        if isinstance(value, list):
            value[place] = self._damaged(value)
            self.say(item, is_text=changed_data.has_text(item))
        else:
            self.say(item.tolist(), is_text=False)
            value[place] = float("nan")

    def _damaged(self, value: list[Any]) -> Any:
        """What the item in the middle of a list is to be; the item itself where nobody knows how."""
        place = len(value) // 2
        if self.kind == "more":
            return _with_more(value[place], value[place + 1 : place + 1 + _MORE])
        return self._other(value[place])

    def _other(self, item: Any) -> Any:
        """An item that is damaged; itself where nobody knows how."""
        if self.kind == "between":
            return _with_half(item)
        if isinstance(item, str):
            return _OTHER_TEXTS[self.kind](item)
        if isinstance(item, os.PathLike):
            return type(item)(self._other(os.fspath(item)))  # type: ignore[call-arg]
        if type(item) in (list, tuple):
            parts = list(item)
            for number, part in enumerate(parts):
                changed = self._other(part)
                if changed is not part:
                    parts[number] = changed
                    return type(item)(parts)
        return item


def _parted(text: str) -> str:
    """With its most frequent sign between the first two letters or digits that are beside each other."""
    signs = _signs(text)
    place = next((at for at in range(1, len(text)) if text[at - 1 : at + 1].isalnum()), 0)
    return text[:place] + text[signs[0]] + text[place:] if signs and place else text


def _joined(text: str) -> str:
    """Without its most frequent sign, at its middle place."""
    signs = _signs(text)
    if not signs:
        return text
    place = signs[len(signs) // 2]
    return text[:place] + text[place + 1 :]


def _foreign(text: str) -> str:
    """With its sign within a word, others for its first two letters that are beside each other, and a blank twice."""
    text = _parted(text)
    pair = _LETTERS.search(text)
    if pair is None:
        return text
    others = "".join(other.upper() if letter.isupper() else other for letter, other in zip(pair[0], "éł"))
    return (text[: pair.start()] + others + text[pair.end() :]).replace(" ", "  ", 1)


def _signs(text: str) -> list[int]:
    """Where its most frequent character is that is no letter, digit or blank."""
    counts = Counter(character for character in text if not (character.isalnum() or character.isspace()))
    most = max(counts, key=lambda character: counts[character], default="")
    return [at for at, character in enumerate(text) if character == most]


_OTHER_TEXTS: dict[str, Callable[[str], str]] = {
    "spoiled": lambda text: f"{text}?",
    "long": lambda text: " ".join([text] * _TIMES),
    "longest": lambda text: " ".join([text] * _MOST_TIMES),
    "short": lambda text: (text.split(maxsplit=1) or [text])[0],
    "cut": lambda text: text[:-1],
    "joined": _joined,
    "foreign": _foreign,
}


def _with_half(item: Any) -> Any:
    """With the last whole number in it a half more; itself where there is none."""
    if type(item) is int:
        return item + 0.5
    if type(item) in (list, tuple):
        parts = list(item)
        for number in reversed(range(len(parts))):
            changed = _with_half(parts[number])
            if changed is not parts[number]:
                parts[number] = changed
                return type(item)(parts)
    return item


def _with_more(item: Any, others: Sequence[Any]) -> Any:
    """With what other items have in the place of the first list of containers in it; itself where there is none."""
    if type(item) not in (list, tuple):
        return item
    for number, part in enumerate(item):
        theirs = [other[number] for other in others if type(other) is type(item) and len(other) > number]
        if _is_list_of_parts(part):
            changed = sum(filter(_is_list_of_parts, theirs), part)
        else:
            changed = _with_more(part, theirs)
        if changed is not part:
            return type(item)([*item[:number], changed, *item[number + 1 :]])
    return item


def _is_list_of_parts(part: Any) -> bool:
    return type(part) is list and bool(part) and all(type(each) in (list, tuple, dict) for each in part)


def _has_numbers(value: Any) -> bool:
    """Whether it is a tensor or an array of floating-point numbers, one of them or more for each sample."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    is_tensor = torch is not None and isinstance(value, torch.Tensor) and value.is_floating_point()
    is_array = numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind == "f"
    return bool((is_tensor or is_array) and value.ndim and len(value) >= changed_data.LEAST)

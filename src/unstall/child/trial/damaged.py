"""Let one sample of the program's data be another: damaged, or far longer than the others. Or let there be far more.

What the program then does is its own matter: an error, or other numbers. ``plan["which"]``: of which dataset, of
those that have such samples, the first is 0; one of each where it is null. ``plan["kind"]``: ``spoiled``, a text has a
character more at its end, and numbers are none any more; ``cut``, it has one less; ``long`` and ``longest``, a text is
there many times over; ``short``, its first word only; ``between``, the last whole number of it is a half more;
``joined``, its most frequent sign is missing once; ``foreign``, such a sign is within a word, too, a letter of it is
none of English, and a blank is two. It is an item in the middle of the first list, array or tensor that a dataset is
made of, or, where none is, has when it is given to a loader; what it was is said in ``damaged.json``, for what is made
of other data cannot be compared, and whether it has a text.

``many``: the list that a dataset is made of, and others as long, are there over and over, and samplers take as many
samples in an epoch as ever, of all. Numbers that count samples, or what they are made of, are far larger then. A
program that takes far more memory for it is ended, and ``damaged.json`` says so.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from unstall.child import trial
from unstall.child.trial import account, shorter

if TYPE_CHECKING:
    from collections.abc import Callable

_LEAST = 8  # samples: fewer are settings
_TIMES, _MOST_TIMES = 16, 200
_MANY = 200_000  # samples: most of their numbers are beyond what 16 bits hold
_MOST_MORE = 1 << 30  # bytes that all of them may take
_LOOK_S = 0.05


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """What datasets are made of, just before they are."""
    if trial.is_helper():
        return []
    damage = Damage(plan["kind"], plan.get("which", 0), os.path.join(folder, "damaged.json"))
    before = [("torch.utils.data.dataset", lambda module: _before_datasets(module, damage))]
    if damage.kind == "many":
        return [*before, ("torch.utils.data.sampler", lambda module: shorter.end_after(module, damage.usual_length))]
    return [*before, ("torch.utils.data.dataloader", lambda module: _before_loaders(module, damage))]


def _before_datasets(module: Any, damage: Damage) -> None:
    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:
        damage.one_of([*args, *kwargs.values()])
        return object.__new__(cls)

    module.Dataset.__new__ = __new__


def _before_loaders(module: Any, damage: Damage) -> None:
    original = module.DataLoader.__init__

    @functools.wraps(original)
    def __init__(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
        damage.own_of(dataset)
        original(self, dataset, *args, **kwargs)

    module.DataLoader.__init__ = __init__


class Damage:
    """Done once in a run, or once to each dataset."""

    def __init__(self, kind: str, left: int | None, path: str):
        self.kind, self.left, self.path = kind, left, path
        self.were_given = False
        """Whether some dataset was made of such values."""
        self.seen: set[int] = set()
        self.usual, self.times = 0, 1
        """Of the data that are many: how long their list was, and how many times as long it is."""

    def usual_length(self, length: int) -> int:
        """Of an epoch of so many samples, if these are of the data that are many."""
        return length // self.times if length > 2 * self.usual else length

    def one_of(self, values: list[Any]) -> None:
        """Damage an item of the first of these that has some, if it is this dataset's turn."""
        self.were_given |= self._take_turn(values)

    def own_of(self, dataset: Any) -> None:
        """The same of what a dataset has made itself, where none was made of something."""
        if not self.were_given and id(dataset) not in self.seen:
            self.seen.add(id(dataset))
            self._take_turn([*getattr(dataset, "__dict__", {}).values()])

    def _take_turn(self, values: list[Any]) -> bool:
        """Whether one of these has items."""
        value = next((value for value in values if self._has_items(value)), None)
        if value is None:
            return False
        is_turn = self.left in (0, None)
        if self.left is not None:
            self.left -= 1
        if not is_turn:
            return True
        if self.kind == "many":
            self._multiply(value, values)
        else:
            self._damage(value)
        return True

    def _has_items(self, value: Any) -> bool:
        if isinstance(value, list) and len(value) >= _LEAST:
            if self.kind == "many":
                return len(value) <= _MANY // 2
            item = value[len(value) // 2]
            return self._other(item) is not item
        return self.kind == "spoiled" and _has_numbers(value)

    def _multiply(self, value: list[Any], values: list[Any]) -> None:
        """Lengthen a list, and all that are as long: a label for each text."""
        self.usual, self.times = len(value), -(-_MANY // len(value))
        item = value[self.usual // 2]
        self._say(repr(item), is_text=_has_text(item))
        alike = {id(each): each for each in values if isinstance(each, list) and len(each) == self.usual}
        for each in alike.values():
            each *= self.times
        threading.Thread(
            target=self._end_if_too_large, args=(account.resident_bytes() + _MOST_MORE,), daemon=True
        ).start()

    def _end_if_too_large(self, most: int) -> None:
        """End the program where it takes more than so many bytes, for the machine's sake."""
        while account.resident_bytes() < most:
            time.sleep(_LOOK_S)
        with open(self.path, "w") as file:
            json.dump({"too_large": True}, file)
        os._exit(1)

    def _damage(self, value: Any) -> None:
        place = len(value) // 2
        item = value[place]
        if isinstance(value, list):
            value[place] = self._other(item)
            self._say(repr(item), is_text=_has_text(item))
        else:
            self._say(repr(item.tolist()), is_text=False)
            value[place] = float("nan")

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

    def _say(self, what: str, *, is_text: bool) -> None:
        digest = hashlib.blake2b(what.encode(), digest_size=8).hexdigest()
        with open(self.path, "w") as file:
            json.dump({"item": digest, "is_text": is_text}, file)


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
    """With its sign within a word, another alphabet's letter for its first, and its first blank twice."""
    text = _parted(text)
    letter = next((character for character in text if character.isascii() and character.isalpha()), "")
    return text.replace(letter, "É" if letter.isupper() else "é", 1).replace(" ", "  ", 1) if letter else text


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


def _has_text(item: Any) -> bool:
    """Whether it is a text, or has one."""
    if isinstance(item, (str, os.PathLike)):
        return True
    return type(item) in (list, tuple) and any(_has_text(part) for part in item)


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


def _has_numbers(value: Any) -> bool:
    """Whether it is a tensor or an array of floating-point numbers, one of them or more for each sample."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    is_tensor = torch is not None and isinstance(value, torch.Tensor) and value.is_floating_point()
    is_array = numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind == "f"
    return bool((is_tensor or is_array) and value.ndim and len(value) >= _LEAST)

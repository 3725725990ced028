"""Let a letter be one that Latin-1 has not, in all texts that datasets are made of, and in what knows these texts.

Lists of texts are changed in place before a dataset is made of them, and so is what it is made of beside them, however
deep: a vocabulary has its words with the other letter, too. ``changed_data.json`` tells which texts these were,
without the samples: where one side keeps its vocabulary elsewhere nothing can be compared.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from unstall.child import trial
from unstall.child.trial import changed_data
from unstall.child.user_files import is_user_file

_OTHER = "ł"
_MOST_PARTS = 1_000_000


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """What datasets are made of, just before they are."""
    if trial.is_helper():
        return []
    data = OtherLetter(None, folder)
    return [("torch.utils.data.dataset", lambda module: changed_data.before_datasets(module, data))]


class OtherLetter(changed_data.ChangedData):
    """The most frequent small letter of the first list of texts is another in all."""

    letter = ""
    parts = 0
    """How many were gone through."""

    def __init__(self, left: int | None, folder: str):
        super().__init__(left, folder)
        self.texts: set[str] = set()
        """That were changed beside the samples."""
        self.known: dict[int, Any] = {}
        """What was gone through, kept so that no other gets its number."""

    def is_meant(self, value: Any) -> bool:
        """Whether it is a list of texts."""
        is_list = isinstance(value, list) and len(value) >= changed_data.LEAST
        return is_list and changed_data.has_text(value[len(value) // 2])

    def change(self, value: Any, values: list[Any]) -> None:
        """Change it and all beside it."""
        if not self.letter:
            counts = Counter(letter for letter in repr(value) if letter.islower() and letter.isascii())
            self.letter = max(counts, key=lambda letter: counts[letter], default="e")
        self._other(value, set())
        for each in values:
            self._other(each, self.texts)
        if self.parts <= _MOST_PARTS:
            self.say(sorted(self.texts), is_text=True)

    def _other(self, part: Any, texts: set[str]) -> Any:
        """What a part becomes; all but texts and tuples are changed in place. ``texts``: takes those that are."""
        if isinstance(part, str):
            other = part.replace(self.letter, _OTHER)
            texts |= {other} - {part}
            return other
        if type(part) is tuple:
            return tuple(self._other(each, texts) for each in part)
        self.parts += 1
        if id(part) in self.known or self.parts > _MOST_PARTS:
            return part
        self.known[id(part)] = part
        if isinstance(part, list):
            part[:] = [self._other(each, texts) for each in part]
        elif isinstance(part, dict):
            others = [self._other(item, texts) for item in part.items()]
            part.clear()
            for key, each in others:  # a Counter would count them, if it were updated
                part[key] = each
        elif isinstance(part, set):
            others = [self._other(each, texts) for each in part]
            part.clear()
            part.update(others)
        elif _is_of_the_program(part):
            for name, each in list(vars(part).items()):
                vars(part)[name] = self._other(each, texts)
        return part


def _is_of_the_program(part: Any) -> bool:
    """Whether it is an object of a class of the program's own, and none that is a dataset or a model."""
    kind = type(part)
    if not hasattr(part, "__dict__") or any(base.__module__.startswith("torch.") for base in kind.__mro__):
        return False
    return is_user_file(getattr(sys.modules.get(kind.__module__), "__file__", None) or "")

"""Data that a program makes datasets of are changed once in a run, before it makes them.

What is changed, and how, a subclass of :class:`ChangedData` says. Which list, array or tensor it was is left to it to
tell in ``changed_data.json``: what is made of other data cannot be compared.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from abc import ABC, abstractmethod
from typing import Any

LEAST = 8  # samples: fewer are settings


class ChangedData(ABC):
    """Done once in a run, or once to each dataset."""

    def __init__(self, left: int | None, folder: str):
        """``left``: how many datasets that have such values are left as they are; None for a change of each."""
        self.left, self.path = left, os.path.join(folder, "changed_data.json")
        self.were_given = False
        """Whether some dataset was made of such values."""
        self.seen: set[int] = set()

    @abstractmethod
    def is_meant(self, value: Any) -> bool:
        """Whether a value is a list, array or tensor of samples that can be changed so."""

    @abstractmethod
    def change(self, value: Any, values: list[Any]) -> None:
        """Change it. ``values``: it, and what the dataset is made of beside it."""

    def one_of(self, values: list[Any]) -> None:
        """Change the first of these that is meant, if it is this dataset's turn."""
        self.were_given |= self._take_turn(values)

    def own_of(self, dataset: Any) -> None:
        """The same of what a dataset has made itself, where none was made of something."""
        if not self.were_given and id(dataset) not in self.seen:
            self.seen.add(id(dataset))
            self._take_turn([*getattr(dataset, "__dict__", {}).values()])

    def _take_turn(self, values: list[Any]) -> bool:
        """Whether one of these is meant."""
        value = next((value for value in values if self.is_meant(value)), None)
        if value is None:
            return False
        is_turn = self.left in (0, None)
        if self.left is not None:
            self.left -= 1
        if is_turn:
            self.change(value, values)
        return True

    def say(self, item: Any, *, is_text: bool) -> None:
        """Tell which item it was, as its ``repr()`` has it, and whether it has a text."""
        digest = hashlib.blake2b(repr(item).encode(), digest_size=8).hexdigest()
        self.tell({"item": digest, "is_text": is_text})

    def tell(self, what: dict[str, Any]) -> None:
        """Write what the parent is to know."""
        with open(self.path, "w") as file:
            json.dump(what, file)


def before_datasets(module: Any, data: ChangedData) -> None:
    """Look at what each dataset is made of. ``module``: ``torch.utils.data.dataset``."""

    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:
        data.one_of([*args, *kwargs.values()])
        return object.__new__(cls)

    module.Dataset.__new__ = __new__


def before_loaders(module: Any, data: ChangedData) -> None:
    """Look at what datasets have when they are given to a loader. ``module``: ``torch.utils.data.dataloader``."""
    original = module.DataLoader.__init__

    @functools.wraps(original)
    def __init__(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
        data.own_of(dataset)
        original(self, dataset, *args, **kwargs)

    module.DataLoader.__init__ = __init__


def has_text(item: Any) -> bool:
    """Whether it is a text, or has one."""
    if isinstance(item, (str, os.PathLike)):
        return True
    return type(item) in (list, tuple) and any(has_text(part) for part in item)

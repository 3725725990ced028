"""Let there be far more samples than ever, in epochs as long as ever: numbers that count them are far larger then.

The list that a dataset is made of, and others as long, are there over and over, and samplers take as many samples in
an epoch as before, of all. Or, with ``plan["times"]``, they are there so many times, and epochs are longer too. A
program that takes far more memory for it is ended, and ``changed_data.json`` says so; else it says what was in the
middle of the list.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from unstall.child import trial
from unstall.child.trial import account, changed_data, shorter

_WANTED = 200_000  # samples: most of their numbers are beyond what 16 bits hold
_MOST_MORE = 1 << 30  # bytes that all of them may take
_LOOK_S = 0.05


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """What datasets are made of, just before they are, and the samplers."""
    if trial.is_helper():
        return []
    times = plan.get("times")
    data = ManyData(0, folder, times)
    hooks: list[tuple[str, Any]] = [
        ("torch.utils.data.dataset", lambda module: changed_data.before_datasets(module, data))
    ]
    if times is None:
        hooks.append(("torch.utils.data.sampler", lambda module: shorter.end_after(module, data.usual_length)))
    return hooks


class ManyData(changed_data.ChangedData):
    """The samples of the first dataset that is made of a list."""

    usual = 0
    """How long its list was."""

    def __init__(self, left: int, folder: str, times: int | None):
        """``times``: how many times as long it is to be; None for as many as it takes."""
        super().__init__(left, folder)
        self.times = times

    def usual_length(self, length: int) -> int:
        """Of an epoch of so many samples, if these are of the data that are many."""
        return length // self.times if self.times and length > 2 * self.usual else length

    def is_meant(self, value: Any) -> bool:
        """Whether it is a list, and not long already."""
        return isinstance(value, list) and changed_data.LEAST <= len(value) <= _WANTED // 2

    def change(self, value: list[Any], values: list[Any]) -> None:
        """Lengthen it, and all that are as long: a label for each text."""
        self.usual, self.times = len(value), self.times or -(-_WANTED // len(value))
        item = value[self.usual // 2]
        self.say(item, is_text=changed_data.has_text(item))
        alike = {id(each): each for each in values if isinstance(each, list) and len(each) == self.usual}
        for each in alike.values():
            each *= self.times
        most = account.resident_bytes() + _MOST_MORE
        threading.Thread(target=self._end_if_too_large, args=(most,), daemon=True).start()

    def _end_if_too_large(self, most: int) -> None:
        """End the program where it takes more than so many bytes, for the machine's sake."""
        while account.resident_bytes() < most:
            time.sleep(_LOOK_S)
        self.tell({"too_large": True})
        os._exit(1)

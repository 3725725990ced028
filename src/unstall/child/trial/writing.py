"""What is about to be written: files that are opened for writing, and what torch saves, which opens them by itself."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def before_opening(then: Callable[[str], None]) -> None:
    """Call ``then(path)`` before a file is opened for writing, from now on; what it raises, the program gets."""

    def audit(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            then(str(args[0]))

    sys.addaudithook(audit)


def before_saving(module: Any, then: Callable[[], None]) -> None:
    """Call ``then()`` before torch saves something. ``module``: ``torch.serialization``."""
    save = module.save

    def save_later(*args: Any, **kwargs: Any) -> Any:
        then()
        return save(*args, **kwargs)

    module.save = save_later
    torch: Any = sys.modules["torch"]
    if getattr(torch, "save", None) is save:
        torch.save = save_later

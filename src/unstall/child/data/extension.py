"""In the user's program: when it first iterates a DataLoader, measure that loader instead, and end the program.

Loaded as an extension of the recorder's child. What is measured goes into its facts, kind ``data``, a line a stage.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from unstall.child import launchers, ownpackage

if TYPE_CHECKING:
    from unstall.child.main import Child, Targets


def install(child: Child) -> Targets:
    """Watch for loaders in the program's own process, or in rank 0 of several."""
    if "--multiprocessing-fork" in sys.orig_argv or not launchers.is_first():
        return {}
    watch = _Watch(child, os.getpid())
    return {"torch.utils.data.dataloader": [watch.put_in_place]}


class _Watch:
    """Counts the loaders that the program iterates, until the one that is wanted."""

    def __init__(self, child: Child, pid: int):
        self.child = child
        self.pid = pid
        self.wanted = int(child.options.get("settings", {}).get("loader", 1))
        self.met: list[int] = []
        self.measuring = self.done = False

    def emit(self, **facts: Any) -> None:
        """Write a line of facts for the parent."""
        self.child.emit_fact("data", **facts)

    def put_in_place(self, module: Any) -> None:
        original = module.DataLoader.__iter__
        watch = self

        def __iter__(self: Any) -> Any:
            watch.meet(self)
            return original(self)

        module.DataLoader.__iter__ = __iter__

    def meet(self, loader: Any) -> None:
        """A loader is about to be iterated. Raises SystemExit when it was measured: the program has served."""
        if os.getpid() != self.pid or self.measuring:
            return
        if self.done:
            raise SystemExit
        if id(loader) not in self.met:
            self.met.append(id(loader))
            self.emit(part="met", dataset=type(loader.dataset).__qualname__)
        if len(self.met) < self.wanted:
            return
        with ownpackage.ours():
            from unstall.child.data.measuring import measure
            from unstall.child.data.reading import EmptyLoader

        self.measuring = True
        try:
            measure(loader, self.emit, self.child.options["settings"])
            self.emit(part="done")
        except EmptyLoader as error:
            self.emit(part="failed", why=f"the loader is empty: {error}")
        except Exception as error:
            self.emit(part="failed", why=f"the data pipeline raised {type(error).__name__}: {error}")
        finally:
            self.measuring, self.done = False, True
        raise SystemExit

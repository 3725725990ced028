"""A recording that is begun and ended in a program that runs already, by scripts that Python itself runs in it.

``sys.remote_exec`` (Python 3.14) has the program's main thread run a script between two of its own instructions. The
script (``benchmark/injection.py``) calls ``start`` here. Standard library only; must not raise into the program.
"""

from __future__ import annotations

import json

from unstall.child import recording
from unstall.child.main import Child, install

BEGIN, END = "begin", "end"

_child: Child | None = None


def start(action: str, directory: str, options: str) -> None:
    """Begin to record into a directory, or end that.

    Args:
        action: ``BEGIN`` or ``END``.
        directory: where the recording goes.
        options: what to record, as ``RecordingOptions.for_child`` says.

    Raises:
        RuntimeError: something else of unstall's records here.
    """
    global _child
    if action == END:
        if _child is not None:
            _child.close()
        return
    if _child is not None:
        _child.move(directory)
    elif recording.opened_by is not None:
        raise RuntimeError("unstall records this program already")
    else:
        _child = Child(directory, json.loads(options))
        install(_child)
    _child.open()

"""From what the person typed to the command that runs: a script, ``-m module``, or any program on the PATH."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path


class CommandError(Exception):
    """The command cannot be started; the message says what is wrong and what to do."""


def resolve(words: Sequence[str]) -> list[str]:
    """The full command line to start. Raises CommandError in one line when there is nothing to start."""
    if not words:
        raise CommandError("nothing to run: give a script, e.g. `unstall run train.py --epochs 1`")
    first = words[0]
    if first == "-m":
        if len(words) < 2:
            raise CommandError("-m needs the name of a module, e.g. `unstall run -m package.train`")
        return [sys.executable, *words]
    if first.startswith("-"):
        raise CommandError(
            f"no such option: {first} (unstall's options come before the script; see `unstall run --help`)"
        )
    path = Path(first)
    if path.is_file():
        if path.suffix in (".py", ".pyw", ".pyc") or not os.access(path, os.X_OK):
            return [sys.executable, *words]
        # Not resolved: the python of a virtual environment is a link, and where it lies makes the environment.
        return [str(path.absolute()), *words[1:]]
    if path.is_dir():
        if (path / "__main__.py").is_file():
            return [sys.executable, *words]
        raise CommandError(f"{first} is a directory without a __main__.py: name the script in it")
    if os.sep not in first:
        # The tools of the environment that unstall is in, though it may not be activated: torchrun, accelerate.
        executable = shutil.which(first) or shutil.which(first, path=str(Path(sys.executable).parent))
        if executable:
            return [executable, *words[1:]]
    if path.suffix == ".py" or os.sep in first:
        raise CommandError(f"no such file: {first} (the working directory is {Path.cwd()})")
    raise CommandError(f"{first} is neither a file nor a program on the PATH")

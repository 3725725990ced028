"""How a command starts Python: some of its options keep unstall out of the program."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence

_PYTHON = re.compile(r"(python|pypy)[\d.]*[a-z]*")
_TAKE_A_WORD = "WX"
_END_THE_OPTIONS = "cm"


def ignores_site(command: Sequence[str]) -> bool:
    """Whether it starts a Python without ``site``, which would import the bootstrap and take it off ``sys.path``."""
    return "S" in _options(command)


def unrecorded(command: Sequence[str]) -> str | None:
    """Why the Python that a command starts cannot be recorded; None where it can, or is no Python."""
    options = _options(command)
    if "S" in options:
        return "python -S leaves out the module site, by which unstall starts"
    for option in "IE":
        if option in options:
            return f"python -{option} ignores PYTHONPATH, by which unstall starts"
    return None


def _options(command: Sequence[str]) -> set[str]:
    """The letters of the interpreter's options; none for a command that is no Python."""
    words = list(command) if is_python(command[0]) else [*_shebang(command[0]), *command]
    letters: set[str] = set()
    if not is_python(words.pop(0)):
        return letters
    while words:
        word = words.pop(0)
        if len(word) < 2 or word[0] != "-" or word[1] == "-":
            return letters
        for index, letter in enumerate(word[1:], 1):
            letters.add(letter)
            if letter in _END_THE_OPTIONS:
                return letters
            if letter in _TAKE_A_WORD:
                if index == len(word) - 1:
                    del words[:1]
                break
    return letters


def is_python(path: str) -> bool:
    """Whether an executable is called as Python is."""
    return _PYTHON.fullmatch(os.path.basename(path)) is not None


def _shebang(path: str) -> list[str]:
    """The interpreter that a script names in its first line, and its options."""
    try:
        with open(path, "rb") as file:
            start = file.read(256)
    except OSError:
        return []
    if not start.startswith(b"#!"):
        return []
    words = os.fsdecode(start[2:].splitlines()[0]).split(maxsplit=1)
    if words and os.path.basename(words[0]) == "env":
        try:
            words = [word for word in shlex.split(words[1]) if word != "-S"]
        except (IndexError, ValueError):
            return []
    return words

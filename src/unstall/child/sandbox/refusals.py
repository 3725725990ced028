"""Notes of what was refused inside, a line each, in a file of each process's own."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path


def note(home: str, text: str) -> None:
    """Append a line; one that cannot be written is lost."""
    line = " ".join(text.split()) + "\n"
    try:
        fd = os.open(
            os.path.join(home, "notes", f"refused-{os.getpid()}.txt"),
            os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC,
            0o600,
        )
        try:
            os.write(fd, line.encode(errors="backslashreplace"))
        finally:
            os.close(fd)
    except OSError:
        pass


def read_refusals(home: Path) -> list[str]:
    """All that was noted, each line once, with how often it was if more than once."""
    counts: Counter[str] = Counter()
    for path in sorted((home / "notes").glob("refused-*.txt")):
        try:
            counts.update(path.read_text(errors="replace").splitlines())
        except OSError:
            continue
    return [text if count == 1 else f"{text} ({count} times)" for text, count in counts.items()]

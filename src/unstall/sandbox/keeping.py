"""The parent's end of the keeper: a process that outlives this one, to tidy up after it (keeper.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_KEEPER = Path(__file__).with_name("keeper.py")
_PATIENCE_S = 120.0


class Keeper:
    """Tidies a sandbox's home when told to, and removes it once this process has closed it or is gone."""

    def __init__(self, home: Path):
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_KEEPER), str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C in the terminal is not for it
        )
        self._asked = 0

    def tidy(self, *, wait: bool) -> None:
        """Let it remove the layers of children that have ended, and put back what a guard has saved.

        With ``wait``, come back when that is done; OSError when files could not be put back.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(b"tidy\n")
        self._process.stdin.flush()
        self._asked += 1
        while wait and self._asked:
            answer = self._process.stdout.readline().decode(errors="replace").strip()
            self._asked -= 1
            if answer != "done" and not self._asked:
                raise OSError(answer or "the process that does it has ended")

    def close(self) -> str:
        """End it, and with it everything left in the sandbox; what went wrong, or an empty string."""
        if self._process.stdin is None or self._process.stdin.closed:
            return ""
        try:
            answers, _ = self._process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            return f"it takes longer than {_PATIENCE_S:.0f} s"
        last = answers.decode(errors="replace").strip().splitlines()[-1:]
        return "" if last in ([], ["done"]) else last[0]

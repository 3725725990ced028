"""The parent's end of the keeper: a process that outlives this one, to tidy up after it (keeper.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from unstall.processes import APART
from unstall.sandbox import leftovers
from unstall.sandbox.thresholds import KEEPER_S

_KEEPER = Path(__file__).with_name("keeper.py")
STILL_RUNNING = "still running: "  # as keeper.py has it


class Keeper:
    """Tidies a sandbox's home when told to, and removes it once this process has closed it or is gone.

    A keeper that somebody has ended is started again when it is needed.
    """

    def __init__(self, home: Path):
        self._home = home
        self._claim = leftovers.claim(home)
        self._process = self._start()
        self._asked = 0

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_KEEPER), str(self._home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            pass_fds=[] if self._claim is None else [self._claim.fileno()],
            **APART,
        )
        assert process.stdout is not None
        process.stdout.readline()  # ready
        return process

    def tidy(self, *, wait: bool) -> None:
        """Let it remove the layers of children that have ended, and put back what a guard has saved.

        With ``wait``, come back when that is done; OSError when files could not be put back.
        """
        if self._process.poll() is not None:
            self._process, self._asked = self._start(), 0
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
            answer = self._last_answer()
            if not answer:  # somebody has ended it
                self._process = self._start()
                answer = self._last_answer()
        except subprocess.TimeoutExpired:
            return f"it takes longer than {KEEPER_S:.0f} s"
        if self._claim is not None:
            self._claim.close()
        return "" if answer == "done" else answer or "the process that does it has ended"

    def _last_answer(self) -> str:
        answers, _ = self._process.communicate(timeout=KEEPER_S)
        lines = answers.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines and self._process.returncode == 0 else ""

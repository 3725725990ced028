"""The commands that a server runs for its client: their processes, their progress, and the files of their answers."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import killpg
from pathlib import Path

import anyio
import psutil
from anyio.abc import Process

from unstall.agents.thresholds import END_PATIENCE_S, KEPT_CALLS, PROGRESS_S

ANSWER, PAGE, PATCH = "answer.json", "answer.md", "changes.patch"
_COMMAND = (sys.executable, str(Path(__file__).with_name("verb_process.py")))
_OUTPUTS = {"--json": ANSWER, "--markdown": PAGE}  # of every verb
_OUT, _ERR = "stdout.txt", "stderr.txt"
FILES = {
    ANSWER: "the whole answer as JSON",
    PAGE: "the whole answer as Markdown",
    PATCH: "the changes, for git apply",
    _OUT: "what the program printed",
    _ERR: "what the program wrote to stderr, and the report as on a terminal",
}
"""What a call may leave behind, and what it is, the most useful first."""
_TAIL_BYTES = 4000

OnProgress = Callable[[float, str], Awaitable[None]]
"""Takes the seconds since the command began, and the last line that it wrote."""


class CallFailed(Exception):
    """A command gave no answer; the message is the line that it ended with."""


@dataclass(frozen=True)
class ToolCall:
    """A command that has ended with an answer."""

    number: int
    folder: Path
    status: int

    @property
    def answer(self) -> bytes:
        """As JSON."""
        return (self.folder / ANSWER).read_bytes()

    def files(self) -> list[tuple[str, Path]]:
        """What can be read of it: names of :data:`FILES`, and where they are."""
        paths = [(name, self.folder / name) for name in FILES]
        return [(name, path) for name, path in paths if path.is_file() and path.stat().st_size]


class ToolCalls:
    """All calls of a server, the newest of which keep their files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self._folders: deque[Path] = deque()
        self._running: set[Process] = set()
        self._measuring = anyio.Lock()

    async def make(
        self, verb: str, words: Sequence[str], *, cwd: Path, on_progress: OnProgress, measures: bool = False
    ) -> ToolCall:
        """Run ``unstall VERB WORDS`` to its end; cancelled, it ends as after Ctrl-C, with all that it has started.

        Args:
            verb: the command.
            words: its options and arguments; those that write the answer's files are added.
            cwd: the working directory.
            on_progress: called about once a second.
            measures: whether it times a program, which two calls at once would disturb: one waits for the other.

        Raises:
            CallFailed: there is no answer.
        """
        call = ToolCall(*self._make_folder(), status=0)
        outputs = [word for option, name in _OUTPUTS.items() for word in (option, str(call.folder / name))]
        if verb == "optimize":
            outputs += ["--patch", str(call.folder / PATCH)]
        command = [*_COMMAND, verb, *outputs, *words]
        if not measures:
            return await self._run(command, call, cwd, on_progress)
        while True:  # with a sign of life while another one measures
            with anyio.move_on_after(PROGRESS_S):
                await self._measuring.acquire()
                break
            await on_progress(0.0, "waiting for another measurement to end")
        try:
            return await self._run(command, call, cwd, on_progress)
        finally:
            self._measuring.release()

    def read(self, number: int, name: str) -> str | None:
        """A file of a call; None where there is none."""
        path = self._folder / str(number) / name
        return path.read_text(errors="replace") if name in FILES and path.is_file() else None

    async def end_all(self) -> None:
        """End every command that still runs."""
        for process in list(self._running):
            await _end(process)

    def _make_folder(self) -> tuple[int, Path]:
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        self._folders.append(folder)
        if len(self._folders) > KEPT_CALLS:
            shutil.rmtree(self._folders.popleft(), ignore_errors=True)
        return self._count, folder

    async def _run(self, command: Sequence[str], call: ToolCall, cwd: Path, on_progress: OnProgress) -> ToolCall:
        began = time.monotonic()
        with (call.folder / _OUT).open("wb") as out, (call.folder / _ERR).open("wb") as err:
            try:
                process = await anyio.open_process(
                    command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd, start_new_session=True
                )
            except OSError as error:
                raise CallFailed(f"{cwd}: {error.strerror}") from error
        self._running.add(process)
        try:
            while process.returncode is None:
                with anyio.move_on_after(PROGRESS_S):
                    await process.wait()
                    break
                await on_progress(time.monotonic() - began, _last_line(call.folder / _ERR))
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
            self._running.discard(process)
        if not (call.folder / ANSWER).is_file():
            raise CallFailed(_last_line(call.folder / _ERR) or f"unstall ended with exit code {process.returncode}")
        return ToolCall(call.number, call.folder, process.returncode or 0)


async def _end(process: Process) -> None:
    """End a command, if it still runs, as Ctrl-C in a terminal does, and what it leaves."""
    if process.returncode is not None:
        return
    with suppress(psutil.NoSuchProcess, ProcessLookupError):
        family = psutil.Process(process.pid).children(recursive=True)
        killpg(process.pid, signal.SIGINT)
        with anyio.move_on_after(END_PATIENCE_S):
            await process.wait()
            for member in family:
                with suppress(psutil.NoSuchProcess):
                    member.kill()
            return
        killpg(process.pid, signal.SIGKILL)  # a sandbox's keeper is in another group, and tidies up
        await process.wait()


def _last_line(path: Path) -> str:
    """The last line of a file that says something, without the command's name before it."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return last.removeprefix("unstall: ").removeprefix("Error: ")

"""Where experiments run, so that nothing of the user's is harmed.

The strongest means that the machine offers is in force: ``overlay``, where every child sees the files as they were
and writes into a layer of its own, in a mount namespace (mounts.py, enter.py); else ``guard``, where Python's own
calls are watched and what they change is put back (guard.py, vault.py). A keeper process (keeper.py) ends and removes
what is left, however this process ends.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from unstall import environment
from unstall.child.sandbox.refusals import read_refusals
from unstall.sandbox import overlay, place
from unstall.sandbox.keeping import Keeper
from unstall.sandbox.trackers import offline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_BOOTSTRAP = Path(__file__).parents[1] / "child" / "bootstrap"


class SandboxError(Exception):
    """Nothing can guarantee that the user's files stay as they are; the message is one line that says why."""


@dataclass(frozen=True)
class Sandbox:
    """Runs programs without their consequences. Made by :func:`open_sandbox`; used for any number of children."""

    _folder: Path
    _home: Path
    _keeper: Keeper
    _overlays: overlay.Overlays | None
    note: str
    """Which means is in force, in one line for the person."""
    _keep: Sequence[Path]
    _network_writes: bool

    @property
    def force(self) -> Literal["overlay", "guard"]:
        """Which means is in force."""
        return "overlay" if self._overlays else "guard"

    def command(self, words: Sequence[str]) -> list[str]:
        """The command to spawn in the place of ``words``: its process becomes the program, with the same pid.

        stdio, signals, exit code, working directory and argv are the program's own. ``words[0]`` is the path of an
        executable, or a name on PATH. Raises SandboxError when the disk that takes what children write is nearly full,
        or, under the guard, when the files could not be put back after the last child.
        """
        if place.free_bytes(self._home) < place.RESERVE_BYTES:
            raise SandboxError(f"no room for what an experiment writes: {self._home.parent} is nearly full")
        try:
            self._keeper.tidy(wait=self._overlays is None)
        except OSError as error:
            raise SandboxError(f"the files could not be put back after an experiment: {error}") from None
        return [*self.entrance, *words]

    @property
    def entrance(self) -> Sequence[str]:
        """The words before the program's own in :meth:`command`: none under the guard."""
        return () if self._overlays is None else self._overlays.entrance

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """The child's environment: ``env``, the sandbox's bootstrap first on PYTHONPATH, trackers offline."""
        inside = dict(env)
        path = inside.get("PYTHONPATH")
        inside["PYTHONPATH"] = f"{_BOOTSTRAP}{os.pathsep}{path}" if path else str(_BOOTSTRAP)
        inside[environment.SANDBOX] = str(self._home)
        inside[environment.SANDBOX_MEANS] = ",".join(self._means())
        if self._overlays is None:
            inside[environment.SANDBOX_KEEP] = os.pathsep.join(map(str, self._keep))
        if not self._network_writes:
            inside.update(offline(inside, self._folder))
        return inside

    def _means(self) -> list[str]:
        """What is to watch in the program's processes."""
        means = [] if self._network_writes else ["network"]
        if self._overlays is None:
            means.append("guard")
        elif not self._overlays.privileged:
            means.append("renames")
        return means

    def refused(self) -> list[str]:
        """What was refused inside so far, a line each with how often: ``POST http://host/path (3 times)``."""
        return read_refusals(self._home)

    def close(self) -> None:
        """End every process that is left inside, put back what the guard saved, remove every layer."""
        failure = self._keeper.close()
        if failure:
            raise SandboxError(f"the files could not be put back: {failure}; they are kept in {self._home / 'vault'}")


GUARD_NOTE = (
    "Python's own writes are watched and undone; those of C code and of other programs are not seen:"
    " no overlay can be had here"
)


@contextlib.contextmanager
def open_sandbox(
    folder: Path, keep: Sequence[Path], *, network_writes: bool = False, required: bool = True
) -> Iterator[Sandbox]:
    """Open a sandbox for the programs of one working directory; closed, nothing of it is left.

    Args:
        folder: the program's working tree.
        keep: existing folders that stay writable for real, such as the recording's.
        network_writes: let programs write to the outside: HTTP POST, tracking servers and the like.
        required: raise when the files' safety cannot be guaranteed; else the guard does what it can.

    Raises:
        SandboxError: nothing can guarantee it and it is required, or there is no room at all.
    """
    for path in keep:
        if not path.is_dir():
            raise SandboxError(f"{path} is not a folder: it cannot be kept writable")
    writable = [path.resolve() for path in keep]
    sandbox = _open(folder.resolve(), writable, network_writes, required)
    try:
        yield sandbox
    finally:
        sandbox.close()


def _open(folder: Path, keep: Sequence[Path], network_writes: bool, required: bool) -> Sandbox:
    """The strongest sandbox there is, in the first place that it works in."""
    reasons: list[str] = []
    for home in place.homes(folder):
        keeper = Keeper(home)
        try:
            overlays = overlay.prepare(home, folder, keep, reasons)
        except BaseException:
            keeper.close()
            raise
        if overlays:
            return Sandbox(folder, home, keeper, overlays, overlays.note, keep, network_writes)
        keeper.close()
    reason = reasons[0] if reasons else "there is no folder to put what is written"
    if required:
        raise SandboxError(
            f"nothing here can keep an experiment from changing your files ({reason});"
            " --no-sandbox runs it all the same, with only Python's own writes undone"
        )
    for home in place.homes(folder):
        return Sandbox(folder, home, Keeper(home), None, f"{GUARD_NOTE} ({reason})", keep, network_writes)
    raise SandboxError("there is no folder to save files in before they are changed")

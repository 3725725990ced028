"""Where experiments run, so that nothing of the user's is harmed.

The strongest means that the machine offers is in force: ``overlay``, where every child sees the files as they were
and writes into a layer of its own, in a mount namespace (mounts.py, enter.py); else ``guard``, where Python's own
calls are watched and what they change is put back (guard.py, vault.py). A keeper process (keeper.py) ends and removes
what is left, however this process ends.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from unstall import environment
from unstall.child.sandbox.refusals import read_refusals
from unstall.sandbox import groups, leftovers, overlay, scratch_dir
from unstall.sandbox.keeper_client import STILL_RUNNING, Keeper
from unstall.sandbox.relay_client import RelayProcess
from unstall.sandbox.thresholds import RESERVE_BYTES
from unstall.sandbox.trackers import offline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_OUR_NOTES = re.compile(r"refused-\w+\.txt|pid-\d+|readonly\.json")
_BOOTSTRAP = Path(__file__).parents[1] / "child" / "bootstrap"


class SandboxError(Exception):
    """Nothing can guarantee that the user's files stay as they are; the message is one line that says why."""


class Sandbox:
    """Runs programs without their consequences. Made by :func:`open_sandbox`; used for any number of children."""

    def __init__(
        self,
        folder: Path,
        home: Path,
        keeper: Keeper,
        relay: RelayProcess | None,
        overlays: overlay.Overlays | None,
        reason: str,
        keep: Sequence[Path],
        network_writes: bool,
    ):
        self.force: Literal["overlay", "guard"] = "overlay" if overlays else "guard"
        """The means of isolation that is in force."""
        self.limits: list[str] = [] if overlays else [f"{GUARD_NOTE} ({reason})"]
        """What is not held back, a line each."""
        if not network_writes and relay is None:
            why = f" ({overlays.shared_network})" if overlays else ""
            self.limits.append(f"{NETWORK_NOTE}{why}")
        self.note = "; ".join([*([overlays.note] if overlays else []), *self.limits])
        """The means of isolation that is in force, in one line for the person."""
        self._folder = folder
        self._home = home
        self._keeper = keeper
        self._relay = relay
        self._overlays = overlays
        self._keep = keep
        self._network_writes = network_writes
        self._on_message: Callable[[str], None] = lambda line: None
        self._refused: list[str] = []
        self._doors: set[str] | None = None

    def command(self, words: Sequence[str], *, settled: bool = False) -> list[str]:
        """The command to spawn in the place of ``words``: its process becomes the program, with the same pid.

        stdio, signals, exit code, working directory and argv are the program's own. ``words[0]`` is the path of an
        executable, or a name on PATH. ``settled``: not before the layers of earlier children are gone, so that the
        only one is then the child's own. Raises SandboxError when the disk that takes what children write is nearly
        full, or, under the guard, when the files could not be put back after the last child.
        """
        if scratch_dir.free_bytes(self._home) < RESERVE_BYTES:
            raise SandboxError(f"no room for what an experiment writes: {self._home.parent} is nearly full")
        try:
            self._keeper.tidy(wait=settled or self._overlays is None)
        except OSError as error:
            raise SandboxError(f"the files could not be put back after an experiment: {error}") from None
        return [*self.entrance, *words]

    @property
    def home(self) -> Path:
        """Its folder: what programs write is in the ``layer-*`` there."""
        return self._home

    @property
    def entrance(self) -> Sequence[str]:
        """The words before the program's own in :meth:`command`: none under the guard."""
        return () if self._overlays is None else self._overlays.entrance

    @property
    def plan(self) -> str | None:
        """The file that says how to enter an overlay, as enter.py reads it; None under the guard."""
        return None if self._overlays is None else self._overlays.entrance[-1]

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
        if self._relay is not None:
            means.append("relay")
        if self._overlays is None:
            means.append("guard")
        elif not self._overlays.privileged:
            means.append("renames")
        return means

    @property
    def knows_one_group(self) -> bool:
        """Whether programs are in an ordinary user's namespace, which has no other groups."""
        return self._overlays is not None and not self._overlays.privileged

    def refused(self) -> list[str]:
        """What was refused inside so far, a line each with how often: ``POST http://host/path (3 times)``."""
        return list(dict.fromkeys([*self._refused, *read_refusals(self._home)]))

    def refused_lately(self) -> list[str]:
        """The same since the notes were forgotten last."""
        return read_refusals(self._home)

    def reached(self) -> list[str]:
        """What programs reached outside their own network so far, a line for each address with its counts."""
        return self._relay.lines() if self._relay else []

    def layers(self) -> list[tuple[str, Path]]:
        """What children wrote whose layers are not removed yet: (folder of the machine, what is written above it)."""
        return [
            (note.read_text(errors="surrogateescape"), note.with_suffix(""))
            for note in self._home.glob("layer-*/upper*.of")
        ]

    def running(self) -> set[int]:
        """The processes that are left inside, daemons too."""
        return leftovers.processes(self._home)

    def forget(self) -> list[str]:
        """Remove what a program has left among the notes, which are written for real: the next one finds nothing there.

        To be called when none runs. What was refused so far is still told.

        Returns:
            The names of what only the program itself can have put there.
        """
        self._refused = self.refused()
        notes = self._home / "notes"
        sockets = {path.name for path in notes.iterdir() if path.is_socket()}
        if self._doors is None:
            self._doors = sockets
        left = [path for path in notes.iterdir() if path.name not in self._doors]
        for path in left:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        return sorted(path.name for path in left if not _OUR_NOTES.fullmatch(path.name))

    def close(self) -> None:
        """End every process that is left inside, put back what the guard saved, remove every layer."""
        if self._relay is not None:
            self._relay.close()
        failure = self._keeper.close()
        if failure.startswith(STILL_RUNNING):
            pids = failure.removeprefix(STILL_RUNNING)
            names = leftovers.named(map(int, pids.split()))
            self._on_message(f"processes of an experiment do not end ({names}): to end them, kill -9 {pids}")
        elif failure:
            raise SandboxError(f"the files could not be put back: {failure}; they are kept in {self._home / 'vault'}")


GUARD_NOTE = (
    "Python's own writes are watched and undone; those of C code and of other programs are not seen:"
    " an overlay is not possible here"
)
NETWORK_NOTE = (
    "a separate network is not possible here: what Python sends is blocked, what C code and other programs send is not"
)


@contextlib.contextmanager
def open_sandbox(
    folder: Path,
    keep: Sequence[Path],
    *,
    network_writes: bool = False,
    required: bool = True,
    on_message: Callable[[str], None] = lambda line: None,
) -> Iterator[Sandbox]:
    """Open a sandbox for the programs of one working directory; closed, nothing of it is left.

    Args:
        folder: the program's working tree.
        keep: existing folders that stay writable for real, such as the recording's.
        network_writes: let programs write to the outside: HTTP POST, tracking servers and the like.
        required: raise when the files' safety cannot be guaranteed; else the guard does what it can.
        on_message: takes a line on what the person should know before a program starts, or after the last one.

    Raises:
        SandboxError: nothing can guarantee it and it is required, or there is no room at all.
    """
    for path in keep:
        if not path.is_dir():
            raise SandboxError(f"{path} is not a folder: it cannot be kept writable")
    writable = [path.resolve() for path in keep]
    for line in leftovers.settle_sandboxes(
        scratch_dir.roots(folder), scratch_dir.PREFIX, lambda home: Keeper(home).close()
    ):
        on_message(line)
    sandbox = _open(folder.resolve(), writable, network_writes, required)
    sandbox._on_message = on_message
    foreign = groups.warning(folder.resolve()) if sandbox.knows_one_group else None
    if foreign is not None:
        on_message(foreign)
    try:
        yield sandbox
    finally:
        sandbox.close()


def _open(folder: Path, keep: Sequence[Path], network_writes: bool, required: bool) -> Sandbox:
    """The strongest sandbox there is, in the first place that it works in."""
    reasons: list[str] = []
    for home in scratch_dir.homes(scratch_dir.roots(folder)):
        keeper = Keeper(home)
        relay = None if network_writes else RelayProcess(home)
        shared_network = "--allow-network-writes"
        if relay is not None:
            shared_network = "" if relay.wait_until_ready() else "its relay cannot be started"
        try:
            overlays = overlay.prepare(home, folder, keep, reasons, shared_network)
        except BaseException:
            _close(keeper, relay)
            raise
        if overlays and overlays.shared_network:
            _close(relay)
            relay = None
        if overlays:
            return Sandbox(folder, home, keeper, relay, overlays, "", keep, network_writes)
        _close(keeper, relay)
    reason = reasons[0] if reasons else "there is no folder to put what is written"
    if required:
        raise SandboxError(
            f"nothing here can keep an experiment from changing your files ({reason});"
            " --no-sandbox runs it anyway, with only Python's own writes undone"
        )
    for home in scratch_dir.homes(scratch_dir.roots(folder)):
        return Sandbox(folder, home, Keeper(home), None, None, reason, keep, network_writes)
    raise SandboxError("there is no folder to save files in before they are changed")


def _close(*helpers: Keeper | RelayProcess | None) -> None:
    for helper in helpers:
        if helper is not None:
            helper.close()

"""The guard: saves what Python code is about to change, so that it can be put back (vault.py).

It sees Python's own calls through audit events (PEP 578; the table in the library reference), not writes of C code
(numpy.tofile, mmap of a file that C opened, HDF5) nor those of programs that are not Python.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from unstall import environment
from unstall.child.sandbox import audit, vault
from unstall.child.sandbox.refusals import note

if TYPE_CHECKING:
    from collections.abc import Callable

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_KEPT = ("/dev/", "/proc/", "/sys/")


class Guard:
    """Saves every path before its first change in this process."""

    def __init__(self, home: str, exempt: tuple[str, ...]):
        self.home = home
        self.vault = os.path.join(home, "vault")
        self.exempt = (*_KEPT, home + os.sep, *(path + os.sep for path in exempt))
        self.saved: set[str] = set()
        self.looks: dict[str, Callable[..., None]] = {
            "open": self.on_open,
            "os.remove": self.on_path,
            "os.rmdir": self.on_path,
            "os.mkdir": lambda path, mode, folder: self.on_path(path, folder),
            "os.truncate": lambda path, length: self.on_path(path),
            "os.chmod": lambda path, mode, folder: self.on_path(path, folder),
            "os.chown": lambda path, user, group, folder: self.on_path(path, folder),
            "os.utime": lambda path, times, ns, folder: self.on_path(path, folder),
            "os.rename": self.on_rename,
            "os.link": lambda source, target, _, folder: self.on_path(target, folder),
            "os.symlink": lambda source, target, folder: self.on_path(target, folder),
            "sqlite3.connect": self.on_database,
            "subprocess.Popen": self.on_program,
            "os.system": lambda command: self.on_program(command, [command], None, None),
        }

    def listen(self) -> None:
        """From here on."""
        audit.listen(self.looks)

    def on_open(self, path: Any, mode: str | None, flags: int) -> None:
        if isinstance(path, int):
            return
        if flags & _WRITING or (mode is not None and set(mode) & set("wax+")):
            self.on_path(path)

    def on_path(self, path: Any, folder: int = -1) -> None:
        """About to change what is at a path, relative to the folder that a descriptor is of, if any."""
        full = self._full(path, folder)
        if full is None or full in self.saved or (full + os.sep).startswith(self.exempt):
            return
        try:
            vault.save(self.vault, full)
        except OSError as error:
            note(self.home, f"a change of {full}, which could not be saved first: {error.strerror}")
            raise
        self.saved.add(full)

    def on_rename(self, source: Any, target: Any, source_folder: int = -1, target_folder: int = -1) -> None:
        self.on_path(source, source_folder)
        self.on_path(target, target_folder)

    def on_database(self, path: Any) -> None:
        """SQLite writes in C, to the file and to some beside it."""
        if isinstance(path, (str, bytes, os.PathLike)):
            name = os.fsdecode(path).removeprefix("file:").partition("?")[0]
            if name and name != ":memory:":
                for suffix in ("", "-journal", "-wal", "-shm"):
                    self.on_path(name + suffix)

    def on_program(self, executable: Any, _words: Any, _folder: Any, _environment: Any) -> None:
        name = os.path.basename(os.fsdecode(executable)) if isinstance(executable, (str, bytes)) else str(executable)
        if not name.startswith(("python", "pypy")):
            note(self.home, f"nothing: what {name} writes is not seen by the guard")

    def _full(self, path: Any, folder: int) -> str | None:
        if isinstance(path, int):
            return _path_of(path)
        try:
            name = os.fsdecode(path)
        except TypeError:
            return None
        if folder >= 0 and not os.path.isabs(name):
            base = _path_of(folder)
            if base is None:
                return None
            name = os.path.join(base, name)
        # Of a link itself the folder is resolved, not the link; what it leads to is saved by its own name.
        head, tail = os.path.split(os.path.abspath(name))
        full = os.path.join(os.path.realpath(head), tail)
        if os.path.islink(full):
            self.on_path(os.path.realpath(full))
        return full


def _path_of(descriptor: int) -> str | None:
    """The path of an open file, where the system tells it."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None


def install(home: str) -> None:
    """Watch from here on, in this process and those it forks; tell the keeper of this process."""
    with open(os.path.join(home, "notes", f"pid-{os.getpid()}"), "w"):
        pass
    writable = tuple(filter(None, os.environ.get(environment.SANDBOX_KEEP, "").split(os.pathsep)))
    Guard(home, writable).listen()

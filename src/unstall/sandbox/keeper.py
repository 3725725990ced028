"""Tidies up in a sandbox's home, and removes it when whoever holds the other end of stdin is gone: ``keeper.py HOME``.

Run as a script of its own in a session of its own, so that neither Ctrl-C nor the end of the experimenter, by
whatever signal, leaves a process, a layer, or a file that the guard has not put back. It answers every line on stdin
with one: ``done``, or what went wrong.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import sys
import threading
import time

TYPE_CHECKING = False  # as typing's, without the import
if TYPE_CHECKING:
    from collections.abc import Callable

    from unstall.child.sandbox import vault
else:
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "child", "sandbox"))
    import vault

_LOOK_S = 2.0
_ENDING_S = 10.0
_LEAST_FREE_BYTES = 256 << 20


class Home:
    """A sandbox's folder: ``layer-*`` of overlay children, ``vault`` of the guard, ``notes`` of what was refused."""

    def __init__(self, path: str):
        self.path = path
        self.lock = threading.Lock()

    def tidy(self) -> None:
        """Remove the layers of children that have ended; put back the vault's files when no child is left."""
        with self.lock:
            alive = namespaces()
            for name in self.layers():
                namespace = self.namespace(name)
                if namespace and namespace not in alive:
                    remove(os.path.join(self.path, name))
            if not self.guarded():
                vault.restore(os.path.join(self.path, "vault"))

    def close(self) -> None:
        """End what is left inside, put back, and be gone."""
        self.end_all()
        with self.lock:
            vault.restore(os.path.join(self.path, "vault"))
            remove(self.path)

    def end_all(self) -> None:
        """Kill every process in the sandbox until there is none."""
        deadline = time.monotonic() + _ENDING_S
        while time.monotonic() < deadline:
            inside = self.inside()
            if not inside:
                return
            for pid in inside:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            time.sleep(0.02)

    def inside(self) -> set[int]:
        """The processes in the sandbox.

        The kernel gives the number of a namespace that is gone to the next one, which may be another sandbox's or a
        container's: so the namespace must show this home as well, as every child's does once it is entered.
        """
        alive = namespaces()
        own = {namespace for name in self.layers() if (namespace := self.namespace(name))}
        candidates = {pid for namespace in own for pid in alive.get(namespace, ())}
        return {pid for pid in candidates if self.sees_home(pid)} | self.guarded()

    def sees_home(self, pid: int) -> bool:
        """Whether a process has this home's notes among its mounts."""
        try:
            with open(f"/proc/{pid}/mountinfo", "rb") as file:
                return os.fsencode(f"/{os.path.basename(self.path)}/notes ") in file.read()
        except OSError:
            return False

    def layers(self) -> list[str]:
        try:
            return [name for name in os.listdir(self.path) if name.startswith("layer-")]
        except OSError:
            return []

    def namespace(self, name: str) -> str | None:
        """The mount namespace that a layer is in; None before it is."""
        try:
            with open(os.path.join(self.path, name, "namespace")) as file:
                return file.read() or None
        except OSError:
            return None

    def guarded(self) -> set[int]:
        """Processes under the guard that still run: each has told its pid when it began."""
        folder = os.path.join(self.path, "notes")
        try:
            pids = [int(name[4:]) for name in os.listdir(folder) if name.startswith("pid-")]
        except OSError:
            return set()
        return {pid for pid in pids if self.runs_here(pid)}

    def runs_here(self, pid: int) -> bool:
        """Whether a process is still the one that told its pid, where that can be seen."""
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                return f"UNSTALL_SANDBOX={self.path}".encode() in file.read().split(b"\0")
        except OSError:
            if os.path.exists("/proc/self/environ"):
                return False
        try:
            os.kill(pid, 0)
        except OSError:
            return False
        return True

    def watch_disk(self) -> None:
        """End the experiments before they fill the disk."""
        while True:
            time.sleep(_LOOK_S)
            try:
                facts = os.statvfs(self.path)
                if facts.f_bavail * facts.f_frsize < _LEAST_FREE_BYTES and self.layers():
                    self.note("disk", "the experiment was ended: what it wrote had nearly filled the disk")
                    self.end_all()
                    self.tidy()
            except OSError:
                return

    def note(self, name: str, text: str) -> None:
        with open(os.path.join(self.path, "notes", f"refused-{name}.txt"), "a") as file:
            file.write(text + "\n")


def namespaces() -> dict[str, set[int]]:
    """Mount namespaces that processes are in, with those processes' pids; ours to see."""
    processes: dict[str, set[int]] = {}
    try:
        entries = os.listdir("/proc")
    except OSError:
        return processes
    for entry in entries:
        if entry.isdigit():
            try:
                processes.setdefault(os.readlink(f"/proc/{entry}/ns/mnt"), set()).add(int(entry))
            except OSError:
                pass
    return processes


def remove(path: str) -> None:
    """Remove a tree whatever its modes are; a mount that goes away at this moment is waited for."""
    for _attempt in range(20):
        for folder, folders, _files in os.walk(path):
            for name in folders:
                locked = os.path.join(folder, name)
                if not os.path.islink(locked):
                    os.chmod(locked, stat.S_IRWXU)
        shutil.rmtree(path, ignore_errors=True)
        if not os.path.lexists(path):
            return
        time.sleep(0.05)


def attempt(action: Callable[[], None]) -> str:
    """Do it; ``done``, or what went wrong in a line."""
    try:
        action()
    except Exception as error:
        return " ".join(str(error).split()) or type(error).__name__
    return "done"


def main(path: str) -> None:
    """Serve until stdin ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    home = Home(path)
    threading.Thread(target=home.watch_disk, daemon=True).start()
    for _line in sys.stdin.buffer:
        answer(attempt(home.tidy))
    answer(attempt(home.close))


def answer(text: str) -> None:
    """Tell the other end, if it still listens."""
    try:
        os.write(1, f"{text}\n".encode())
    except OSError:
        pass  # nobody is there to read it


if __name__ == "__main__":
    main(sys.argv[1])

"""Tidies up in a sandbox's home, and removes it when whoever holds the other end of stdin is gone: ``keeper.py HOME``.

Run as a script of its own in a session of its own, so that neither Ctrl-C nor the end of the experimenter, by
whatever signal, leaves a process, a layer, or a file that the guard has not put back. It answers every line on stdin
with one: ``done``, or what went wrong.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import struct
import sys
import threading
import time

TYPE_CHECKING = False  # as typing's, without the import
if TYPE_CHECKING:
    from collections.abc import Callable

    from unstall.child.sandbox import vault
    from unstall.sandbox import census, control_group, door, thresholds
else:
    _HERE = os.path.dirname(os.path.abspath(__file__))
    sys.path[:0] = [_HERE, os.path.join(os.path.dirname(_HERE), "child", "sandbox")]
    import census
    import control_group
    import door
    import thresholds
    import vault

STILL_RUNNING = "still running: "


class Home:
    """A sandbox's folder: ``layer-*`` of overlay children, ``vault`` of the guard, ``notes`` of what was refused."""

    def __init__(self, path: str):
        self.path = path
        self.lock = threading.Lock()
        self.namespaces: dict[census.Namespace, int] = {}
        """Those of the children, each held open by a descriptor."""

    def tidy(self) -> None:
        """Remove the layers of children that have ended; put back the vault's files when no child is left."""
        with self.lock:
            alive = namespaces()
            for name in self.layers():
                namespace = self.namespace(name)
                if namespace and namespace not in alive and not control_group.members(self.group(name)):
                    control_group.remove(self.group(name))
                    remove(os.path.join(self.path, name))
            self.forget_namespaces()
            if not self.guarded():
                vault.restore(os.path.join(self.path, "vault"))

    def close(self) -> None:
        """End what is left inside, put back, and be gone. OSError when something is left."""
        running = self.end_all()
        with self.lock:
            vault.restore(os.path.join(self.path, "vault"))
            if running:
                raise OSError(f"{STILL_RUNNING}{' '.join(map(str, sorted(running)))}")
            for name in self.layers():
                control_group.remove(self.group(name))
            remove(self.path)

    def end_all(self) -> set[int]:
        """Kill every process in the sandbox until there is none; those that would not end."""
        deadline = time.monotonic() + thresholds.ENDING_S
        while (inside := self.inside()) and time.monotonic() < deadline:
            for pid in inside:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            time.sleep(0.02)
        return inside

    def inside(self) -> set[int]:
        """The processes in the sandbox that have not ended."""
        groups = set().union(*(control_group.members(self.group(name)) for name in self.layers()))
        pids = census.inside(self.path, self.namespaces) | groups | self.guarded()
        return {pid for pid in pids if not is_zombie(pid)}

    def take(self, entrance: socket.socket) -> None:
        """Keep a child's namespaces, whose numbers are then nobody else's, and give it a control group."""
        with entrance:
            message, handles = door.receive(entrance)
            pid = struct.unpack("3i", entrance.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
            with self.lock:
                for handle in handles:
                    self.namespaces[census.identify(handle)] = handle
            entrance.send(b"held")
        group = control_group.move(pid, f"{os.path.basename(self.path)}-{message['layer']}")
        with open(os.path.join(self.path, message["layer"], "group"), "w") as file:
            file.write(group)

    def forget_namespaces(self) -> None:
        """Let go of the namespaces in which no process is any more."""
        if not self.namespaces:
            return
        used: set[census.Namespace] = set()
        for pid in census.pids():
            try:
                used.update(census.namespaces_of(pid))
            except OSError:
                pass  # it has ended, or is another user's
        for namespace in self.namespaces.keys() - used:
            os.close(self.namespaces.pop(namespace))

    def group(self, name: str) -> str:
        """The control group of a layer's processes; nothing where there is none."""
        try:
            with open(os.path.join(self.path, name, "group")) as file:
                return file.read()
        except OSError:
            return ""

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
            pids = [int(name[4:]) for name in os.listdir(folder) if name.startswith("pid-") and name[4:].isdigit()]
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
            time.sleep(thresholds.DISK_LOOK_S)
            try:
                facts = os.statvfs(self.path)
                if facts.f_bavail * facts.f_frsize < thresholds.LEAST_FREE_BYTES and self.layers():
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


def is_zombie(pid: int) -> bool:
    """Whether a process has ended, and only its parent has not taken note."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


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


def listen(home: Home) -> None:
    """Take the namespaces that entrances hand over."""
    entrances = socket.socket(fileno=door.open_door(home.path, "keeper").detach())

    def serve() -> None:
        while True:
            entrance, _ = entrances.accept()
            try:
                home.take(entrance)
            except OSError:
                pass  # it has ended meanwhile

    threading.Thread(target=serve, daemon=True).start()


def main(path: str) -> None:
    """Serve until stdin ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    home = Home(path)
    if sys.platform == "linux":
        listen(home)
    answer("ready")
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

"""Enter the sandbox and become the program: ``enter.py PLAN CMD [ARG...]``.

Run as a script by a bare interpreter, before the program in its process. It makes a mount namespace, lays out the
tree that the plan tells (mounts.py has the words), makes it the root, proves that nothing in it is written to for real
(proof.py), and executes the program.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import tempfile

TYPE_CHECKING = False  # as typing's, without the import
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from unstall.sandbox import door, kernel, mountinfo, network_namespace, proof
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import door
    import kernel
    import mountinfo
    import network_namespace
    import proof

_FORBIDDEN = {"nosuid": os.ST_NOSUID, "noexec": 8}
_NAMESPACES = ("user", "mnt", "net", "ipc")
_QUEUES = "/dev/mqueue"
_STATUS = 126  # as a shell's for a command that cannot be executed


class Entrance:
    """Lays out one child's tree."""

    def __init__(self, plan: dict[str, Any], words: Sequence[str], environment: Mapping[bytes, bytes]):
        self.plan = plan
        self.reach = [] if plan["privileged"] else _reached(plan["reach"], words, environment)
        self.privileged = plan["privileged"]
        self.layer = tempfile.mkdtemp(prefix="layer-", dir=plan["home"])
        self.root = os.path.join(self.layer, "root")
        os.mkdir(self.root)
        self.layers = 0
        self.degraded: list[str] = []

    def open(self) -> None:
        """Be in the sandbox; OSError when it cannot be had, or not be proven to keep what is written from the files."""
        folder = os.getcwd()
        self.leave_namespaces()
        kernel.make_private()
        machine_devices = {mount.device for mount in mountinfo.read_all()}
        self.lay_out()
        self.note_degraded()
        kernel.change_root(self.root)
        written = [*self.plan["keep"], os.path.join(self.plan["home"], "notes")]
        proof.check_mounts(machine_devices, self.layer, written)
        os.chdir(folder)

    def leave_namespaces(self) -> None:
        """Make namespaces of one's own, and let the keeper know them."""
        uid, gid = os.geteuid(), os.getegid()
        before = {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in _NAMESPACES}
        keeper = door.call(self.plan["home"], "keeper")
        kernel.unshare(kernel.CLONE_NEWNS | (0 if self.privileged else kernel.CLONE_NEWUSER))
        if not self.privileged:
            kernel.map_self(uid, gid)
        self.leave_network()
        try:
            kernel.unshare(kernel.CLONE_NEWIPC)
        except OSError:
            pass  # shared memory by number is then the machine's own
        with open(os.path.join(self.layer, "namespace"), "w") as file:
            file.write(os.readlink("/proc/self/ns/mnt"))
        changed = [kind for kind in _NAMESPACES if os.readlink(f"/proc/self/ns/{kind}") != before[kind]]
        handles = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in changed]
        door.send(keeper, {"layer": os.path.basename(self.layer)}, handles)
        keeper.recv(16)  # it has them
        keeper.close()
        for handle in handles:
            os.close(handle)

    def leave_network(self) -> None:
        """Have a network of one's own, where the plan wants that. Whether the kernel can is found out by the trial."""
        if self.plan["network"] == "shared":
            return
        try:
            network_namespace.enter(self.plan["home"])
        except OSError as error:
            raise OSError(f"no network of its own: {error}") from None

    def lay_out(self) -> None:
        """Mount the program's tree below ``root``."""
        for action, path, detail in self.plan["steps"]:
            if os.path.lexists(path):  # else it is gone by now
                getattr(self, action)(path, detail)
        self.overlay_reached()
        for path in self.plan["sockets"]:
            self.socket(path)
        self.queues()
        self.hide(self.plan["home"])
        for path in self.plan["keep"]:
            kernel.bind(path, self.target(path))

    def overlay(self, path: str, forbidden: str) -> None:
        """A layer of its own above the tree at ``path``; where the kernel cannot, nothing may be written there."""
        if not self.lay_over(path, forbidden):
            self.readonly(path)
            self.degraded.append(path)

    def overlay_reached(self) -> None:
        """What this child writes to, and the plan has left read-only as a part of something else, has its layer too."""
        planned = [path for _, path, _ in self.plan["steps"]]
        for path in sorted(self.reach, key=len):
            there = self.root + path
            if any(mountinfo.inside(path, degraded) for degraded in self.degraded) or not os.path.isdir(there):
                continue
            flags = os.statvfs(path).f_flag
            if flags & os.ST_RDONLY or not os.statvfs(there).f_flag & os.ST_RDONLY:
                continue
            if not any(mountinfo.below(step, path) for step in planned):  # which would be hidden
                self.lay_over(path, ",".join(name for name, flag in _FORBIDDEN.items() if flags & flag))

    def lay_over(self, path: str, forbidden: str) -> bool:
        """Lay an overlay over the tree at ``path``; whether the kernel could."""
        self.layers += 1
        upper, work = (os.path.join(self.layer, f"{name}{self.layers}") for name in ("upper", "work"))
        for folder in (upper, work):
            os.mkdir(folder)
        with open(f"{upper}.of", "w", errors="surrogateescape") as file:
            file.write(path)
        target = self.target(path)
        try:
            for reached in self.reach:
                _open_way(path, upper, reached)
            facts = os.stat(path)
            # The upper folder's mode is the tree's; it is this user's, so what he may not write to is shut to all.
            closed = 0 if os.access(path, os.W_OK) else 0o222
            os.chmod(upper, facts.st_mode & 0o7777 & ~closed)
            if self.privileged:
                os.chown(upper, facts.st_uid, facts.st_gid)
            os.utime(upper, ns=(facts.st_atime_ns, facts.st_mtime_ns))
            kernel.overlay(path, upper, work, target, forbidden=forbidden, privileged=self.privileged)
        except OSError:
            return False
        return True

    def bind(self, path: str, _detail: str = "") -> None:
        try:
            kernel.bind(path, self.target(path))
        except (FileNotFoundError, PermissionError):
            pass  # gone by now, or not this user's to see

    def readonly(self, path: str, _detail: str = "") -> None:
        _show_readonly(path, self.target(path))

    def memory(self, path: str, mode: str) -> None:
        kernel.memory(self.target(path), f"mode={mode}")

    def link(self, path: str, target: str) -> None:
        os.symlink(target, self.root + path)

    def shm(self, path: str, _detail: str) -> None:
        """Shared memory that is this child's own: what is there is seen, what is made there is gone with it."""
        if not os.listdir(path):
            kernel.memory(self.target(path), f"mode=1777,size={_size(path)}")
            return
        scratch = os.path.join(self.layer, "shm")
        os.mkdir(scratch)
        kernel.memory(scratch, f"mode=700,size={_size(path)}")
        upper, work = os.path.join(scratch, "upper"), os.path.join(scratch, "work")
        os.mkdir(upper)
        os.mkdir(work)
        os.chmod(upper, 0o1777)
        kernel.overlay(path, upper, work, self.target(path), forbidden="nosuid", privileged=self.privileged)

    def queues(self) -> None:
        """The message queues that the program may make, in the place of the machine's."""
        if os.path.isdir(self.root + _QUEUES):
            try:
                kernel.message_queues(self.root + _QUEUES)
            except OSError:
                pass  # those of the machine are seen; the system calls reach the program's own

    def socket(self, path: str) -> None:
        """A socket is known by the very file that its server made, which an overlay does not show."""
        try:
            _show_readonly(path, self.root + path)
        except OSError:
            pass  # gone by now, or not this user's to see

    def hide(self, home: str) -> None:
        """The layers are not part of the tree; the notes of what was refused are written for real."""
        kernel.memory(self.root + home, "mode=755,size=1m")
        notes = os.path.join(home, "notes")
        kernel.bind(notes, self.target(notes))

    def target(self, path: str) -> str:
        """Where a path lies in the new tree; it is made where a new folder has to hold it."""
        target = self.root + path.rstrip("/")
        if not os.path.lexists(target):
            if os.path.isdir(path):
                os.makedirs(target, exist_ok=True)
            else:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
        return target

    def note_degraded(self) -> None:
        """Which folders could only be made read-only."""
        note = os.path.join(self.plan["home"], "notes", "readonly.json")
        if not os.path.exists(note):
            with open(note, "w") as file:
                json.dump(self.degraded, file)


def _show_readonly(path: str, target: str) -> None:
    """Show a file or a folder at its place, with all that is mounted in it, and let nobody write to it."""
    try:
        mounted = _make_readonly(target)
        if not mounted:
            kernel.bind(path, target)
    except (FileNotFoundError, PermissionError):
        return  # gone by now, or in a folder that this user cannot even enter
    if not mounted:
        _make_readonly(target)


def _make_readonly(target: str) -> bool:
    """No writes through the mount at ``target`` and those below it; False when nothing is mounted there."""
    try:
        if kernel.make_tree_readonly(target):
            return True
        kernel.make_readonly(target)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise
    for mount in mountinfo.read_all():
        if mountinfo.below(mount.path, target):
            try:
                kernel.make_readonly(mount.path)
            except OSError:
                pass  # under another mount, or not this user's to enter; if it is, the proof finds it
    return True


def _reached(writable: Sequence[str], words: Sequence[str], environment: Mapping[bytes, bytes]) -> list[str]:
    """Folders that this child may write to: those known to the parent, and those its words and environment name."""
    named = [word.rpartition("=")[2] for word in words] + [os.fsdecode(value) for value in environment.values()]
    folders = dict.fromkeys(writable)
    for name in [os.getcwd(), *named]:
        while os.path.isabs(name) and not os.path.isdir(name):
            name = os.path.dirname(name)
        if os.path.isabs(name) and os.access(name, os.W_OK):
            folders[os.path.realpath(name)] = None
    return list(folders)


def _open_way(path: str, upper: str, reached: str) -> None:
    """Make the folders that lead to a writable one in the layer already, as they are below.

    The kernel would make them at the first write, as their owner's: it cannot, where the owner is somebody else, whom
    a user namespace does not know.
    """
    inside = os.path.relpath(reached, path)
    if inside.split(os.sep)[0] in (os.curdir, os.pardir):
        return
    opened = []
    below, above = path, upper
    for name in inside.split(os.sep):
        below, above = os.path.join(below, name), os.path.join(above, name)
        if not os.path.isdir(above):
            os.mkdir(above)
            opened.append((below, above))
    for below, above in reversed(opened):
        facts = os.stat(below)
        closed = 0 if os.access(below, os.W_OK) else 0o222
        os.chmod(above, facts.st_mode & 0o7777 & ~closed)
        os.utime(above, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def _size(path: str) -> int:
    facts = os.statvfs(path)
    return facts.f_blocks * facts.f_frsize


def _own_environment() -> dict[bytes, bytes]:
    """The environment as it was given: the interpreter may have set the locale's category in its own."""
    with open("/proc/self/environ", "rb") as file:
        pairs = [entry.partition(b"=") for entry in file.read().split(b"\0") if b"=" in entry]
    return {name: value for name, _, value in pairs}


def main(plan_path: str, words: list[str]) -> int:
    """Enter, and become the program."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    environment = _own_environment()
    try:
        with open(plan_path) as file:
            plan = json.load(file)
        Entrance(plan, words, environment).open()
    except OSError as error:
        print(f"unstall: the sandbox could not be entered: {error}", file=sys.stderr, flush=True)
        return _STATUS
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores for itself
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(words[0], words, environment)
    except OSError as error:
        print(f"unstall: {words[0]}: {error.strerror}", file=sys.stderr, flush=True)
    return _STATUS + (not os.path.exists(words[0]))


if __name__ == "__main__":
    os._exit(main(sys.argv[1], sys.argv[2:]))

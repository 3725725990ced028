"""The system calls that lay out a mount namespace. Linux, standard library only: it runs in any interpreter."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
_MS_RDONLY = 1
_MS_NOSUID = 2
_MS_NODEV = 4
_MS_NOEXEC = 8
_MS_REMOUNT = 32
_MS_BIND = 4096
_MS_REC = 16384
_MS_PRIVATE = 1 << 18
_MS_RELATIME = 1 << 21
_MNT_DETACH = 2
_MOUNT_ATTR_RDONLY = 1
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_SETATTR = 442  # on every architecture
_FLAGS = {"nosuid": _MS_NOSUID, "nodev": _MS_NODEV, "noexec": _MS_NOEXEC}
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave the namespaces named by ``flags`` for new ones; OSError when that is not allowed."""
    _check(_libc.unshare(flags), "unshare")


def map_self(uid: int, gid: int) -> None:
    """In a new user namespace: be who one was. Everybody else shows as nobody there."""
    for name, text in (("uid_map", f"{uid} {uid} 1"), ("setgroups", "deny"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def make_private() -> None:
    """No mount made from here on shows in another namespace."""
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE, None)


def bind(source: str, target: str) -> None:
    """Show a file, or a folder with all that is mounted in it, at another place."""
    _mount(source, target, None, _MS_BIND | _MS_REC, None)


def make_tree_readonly(target: str) -> bool:
    """No writes through the mount at ``target`` and those below it, or False where the kernel cannot do that at once.

    OSError with EINVAL when nothing is mounted there.
    """
    attributes = struct.pack("=QQQQ", _MOUNT_ATTR_RDONLY, 0, 0, 0)
    path = os.fsencode(target)
    result = _libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, path, _AT_RECURSIVE, attributes, ctypes.c_size_t(len(attributes)))
    if result != 0 and ctypes.get_errno() in {errno.ENOSYS, errno.EPERM}:  # before Linux 5.12, or filtered
        return False
    _check(result, f"mount_setattr {target}")
    return True


def make_readonly(target: str) -> None:
    """No writes through this one mount; OSError with EINVAL when nothing is mounted there."""
    # What the mount forbids already must be said again.
    names = ((os.ST_NOSUID, _MS_NOSUID), (4, _MS_NODEV), (8, _MS_NOEXEC), (1024, 1024), (2048, 2048))
    kept_flags = sum(flag for reported, flag in names if os.statvfs(target).f_flag & reported)
    _mount("none", target, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | kept_flags, None)


def memory(target: str, options: str) -> None:
    """A new empty tmpfs."""
    _mount("tmpfs", target, "tmpfs", _MS_NOSUID | _MS_NODEV, options)


def message_queues(target: str) -> None:
    """The POSIX message queues of this IPC namespace."""
    _mount("mqueue", target, "mqueue", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None)


def overlay(lower: str, upper: str, work: str, target: str, *, forbidden: str, privileged: bool) -> None:
    """A tree whose content is ``lower``'s, and whose changes go to ``upper``."""
    options = [f"lowerdir={_escape(lower)}", f"upperdir={_escape(upper)}", f"workdir={_escape(work)}"]
    # With redirects a folder of the lower tree can be renamed; an ordinary user's overlay cannot have them.
    options.append("redirect_dir=on" if privileged else "userxattr")
    flags = sum(_FLAGS[name] for name in forbidden.split(",") if name in _FLAGS)
    _mount("overlay", target, "overlay", flags | _MS_RELATIME, ",".join(options))


def change_root(new: str) -> None:
    """Make a tree the root; the old one is not reachable any more. The working directory is the new root."""
    os.chdir(new)
    number = _PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(f"no number is known for pivot_root on {platform.machine()}")
    _check(_libc.syscall(number, b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _MNT_DETACH), "umount2")
    os.chdir("/")


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None) -> None:
    _check(
        _libc.mount(
            os.fsencode(source),
            os.fsencode(target),
            kind.encode() if kind else None,
            ctypes.c_ulong(flags),
            os.fsencode(options) if options else None,
        ),
        f"mount {target}",
    )


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)} ({what})")


def _escape(path: str) -> str:
    """As overlayfs reads its options: a colon parts layers, a comma options."""
    return path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")

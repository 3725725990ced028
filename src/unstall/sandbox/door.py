"""How the entrance of a sandbox speaks to the processes beside it: a unix socket among the notes of its home.

Runs in a bare interpreter: standard library only. ``_socket`` in the place of ``socket``, whose import takes longer
than all that is said.
"""

from __future__ import annotations

import _socket
import array
import json
import os

TYPE_CHECKING = False  # as typing's, without the import
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_MOST_HANDLES = 253  # in one message: SCM_MAX_FD


def open_door(home: str, name: str) -> _socket.socket:
    """Listen for callers."""
    door = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC)
    try:
        os.unlink(os.path.join(home, "notes", name))  # of one that has ended
    except FileNotFoundError:
        pass
    _by_short_path(home, name, door.bind)
    door.listen(128)
    return door


def call(home: str, name: str) -> _socket.socket:
    """The caller's end. OSError when nobody listens."""
    caller = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC)
    _by_short_path(home, name, caller.connect)
    return caller


def send(sock: _socket.socket, message: dict[str, object], handles: Sequence[int] = ()) -> None:
    """Send a message, and open files with it."""
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", handles).tobytes())] if handles else []
    sock.sendmsg([json.dumps(message).encode()], rights)


def receive(sock: _socket.socket) -> tuple[Any, list[int]]:
    """A message and the open files that came with it; None at the end."""
    data, ancillary, _, _ = sock.recvmsg(1 << 16, _socket.CMSG_SPACE(4 * _MOST_HANDLES))
    handles = array.array("i")
    for level, kind, content in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            handles.frombytes(content[: len(content) - len(content) % handles.itemsize])
    return json.loads(data) if data else None, list(handles)


def _by_short_path(home: str, name: str, action: Any) -> None:
    """The address of a unix socket has room for 107 bytes only."""
    folder = os.open(os.path.join(home, "notes"), os.O_PATH | os.O_CLOEXEC)
    try:
        action(f"/proc/self/fd/{folder}/{name}")
    finally:
        os.close(folder)

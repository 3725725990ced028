"""Sockets of this machine's network, for a program in a network of its own: the relay lends them (sandbox/relay.py)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

_OPTIONS = ("SO_KEEPALIVE", "TCP_NODELAY", "TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
"""Those that HTTP libraries set before they connect."""


def borrow(home: str, sock: socket.socket, host: str, port: int) -> None:
    """Put a socket of the machine's network in the place of one that is about to be connected.

    Nothing happens where the address is of the program's own network, or there is no relay any more: then the
    connection is what it is in that network.
    """
    import array
    import json
    import socket as sockets

    handles = array.array("i")
    try:
        folder = os.open(os.path.join(home, "notes"), os.O_PATH | os.O_CLOEXEC)
        try:
            # Not ``connect`` of this class, which programs replace, and by a path that is short enough for an address.
            with sockets.socket(sockets.AF_UNIX, sockets.SOCK_SEQPACKET) as relay:
                relay.connect(f"/proc/self/fd/{folder}/relay")
                relay.send(json.dumps({"lend": [sock.family, sock.type, sock.proto, host, port]}).encode())
                _, ancillary, _, _ = relay.recvmsg(64, sockets.CMSG_SPACE(handles.itemsize))
        finally:
            os.close(folder)
        for _, _, content in ancillary:
            handles.frombytes(content)
        for lent in handles:
            _replace(sock, lent)
    except OSError:
        pass


def _replace(sock: socket.socket, lent: int) -> None:
    """Let the socket's descriptor be of another socket, with what was set already."""
    import socket as sockets

    number = sock.fileno()
    with sockets.socket(sock.family, sock.type, sock.proto, fileno=lent) as replacement:
        for name in _OPTIONS:
            level = sockets.SOL_SOCKET if name.startswith("SO_") else sockets.IPPROTO_TCP
            option = getattr(sockets, name, None)
            if option is not None and (value := sock.getsockopt(level, option)):
                replacement.setsockopt(level, option, value)
        os.set_blocking(replacement.fileno(), os.get_blocking(number))
        os.dup2(replacement.fileno(), number, inheritable=os.get_inheritable(number))

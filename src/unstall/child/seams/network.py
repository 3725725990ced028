"""Sockets: time blocked on the network and bytes moved, whatever HTTP client or database driver is on top.

Only the internet address families count; local sockets are how the processes of one program talk.
"""

from __future__ import annotations

from typing import Any

from unstall.child.recording import wrap_attribute


def _install_socket(module: Any) -> None:
    for name in (
        "connect",
        "recv",
        "recv_into",
        "recvfrom",
        "recvmsg",
        "send",
        "sendall",
        "sendto",
        "accept",
    ):
        wrap_attribute(module.socket, name, f"~net.{name}", network=True)
    wrap_attribute(module, "getaddrinfo", "~net.getaddrinfo")


def _install_ssl(module: Any) -> None:
    # recv, recv_into and sendall call these.
    for name in ("read", "send", "write", "do_handshake"):
        wrap_attribute(module.SSLSocket, name, f"~net.ssl.{name}", network=True)


def _install_selectors(module: Any) -> None:
    # An asyncio client blocks here, not in recv; the parent counts it only where bytes of the network moved.
    wrap_attribute(module.DefaultSelector, "select", "~net.select")


TARGETS = {"socket": _install_socket, "ssl": _install_ssl, "selectors": _install_selectors}

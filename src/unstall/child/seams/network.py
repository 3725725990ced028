"""Sockets: time blocked on the network and bytes moved, whatever HTTP client or database driver is on top.

Only the internet address families count; local sockets are how the processes of one program talk.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from unstall.child import finding
from unstall.child.recording import wrap_attribute
from unstall.records.vocabulary import Seam

SOCKET = Seam("~net.*", stub="network")
SELECT = SOCKET.named("select")
"""The spans in which an event loop waits, for the network or for anything else."""

_REQUESTS = (
    ("requests.sessions", "Session", "send"),
    ("httpx", "Client", "send"),
    ("urllib.request", "OpenerDirector", "open"),
)
"""The calls of common clients that send a request and return its response."""


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
        wrap_attribute(module.socket, name, SOCKET, name, network=True)
    wrap_attribute(module, "getaddrinfo", SOCKET, "getaddrinfo")


def _install_ssl(module: Any) -> None:
    # recv, recv_into and sendall call these.
    for name in ("read", "send", "write", "do_handshake"):
        wrap_attribute(module.SSLSocket, name, SOCKET, f"ssl.{name}", network=True)


def _install_selectors(module: Any) -> None:
    # An asyncio client blocks here, not in recv; the parent counts it only where bytes of the network moved.
    wrap_attribute(module.DefaultSelector, "select", SOCKET, "select")


def _find() -> list[FunctionType]:
    """Those of the clients that are imported, whole requests: an answer cannot be put together from packets."""
    return finding.functions(
        getattr(getattr(sys.modules.get(name), owner, None), attribute, None) for name, owner, attribute in _REQUESTS
    )


SEAMS = (SOCKET,)
FINDERS = {SOCKET.stub: _find}
TARGETS = {"socket": _install_socket, "ssl": _install_ssl, "selectors": _install_selectors}

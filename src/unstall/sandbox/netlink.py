"""The few requests by netlink(7) that it takes to furnish a network namespace. Standard library only, and little of it.

``_socket`` in the place of ``socket``: that imports enums and selectors, which cost more than the namespace itself.
"""

from __future__ import annotations

import _socket
import errno
import os
import struct

TYPE_CHECKING = False  # as typing's, without the import
if TYPE_CHECKING:
    from collections.abc import Iterator

_ROUTE, _SOCKETS = 0, 4  # NETLINK_ROUTE, NETLINK_SOCK_DIAG
_ERROR, _DONE = 2, 3
_NEW_LINK, _NEW_ADDRESS, _GET_ADDRESSES = 16, 20, 22
_BY_FAMILY, _LISTENING = 20, 1 << 10  # SOCK_DIAG_BY_FAMILY, the state TCP_LISTEN
_REQUEST, _ACKNOWLEDGE, _DUMP, _EXCLUSIVE, _CREATE = 1, 4, 0x300, 0x200, 0x400
_UP = 1  # IFF_UP
_IFLA_IFNAME, _IFLA_LINKINFO, _IFLA_INFO_KIND = 3, 18, 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_NO_DUPLICATE_DETECTION = 2  # IFA_F_NODAD
_SCOPE_LINK = 253
LOOPBACK = 1
"""The index of ``lo`` in a new namespace."""


def addresses() -> list[tuple[int, int, bytes]]:
    """The machine's own addresses but those of single links: index of the interface, family, address."""
    answer = _ask(_GET_ADDRESSES, _REQUEST | _DUMP, struct.pack("=BBBBI", 0, 0, 0, 0, 0))
    entries = []
    for kind, body in answer:
        if kind != _NEW_ADDRESS:
            continue
        family, _, _, scope, index = struct.unpack_from("=BBBBI", body)
        attributes = dict(_attributes(body[8:]))
        address = attributes.get(_IFA_LOCAL) or attributes.get(_IFA_ADDRESS)
        if address and scope < _SCOPE_LINK:
            entries.append((index, family, address))
    return entries


def listening() -> Iterator[tuple[int, bytes, int]]:
    """Where somebody listens in TCP: family, address and port. OSError where the kernel does not tell.

    In /proc/net/tcp all connections are behind that, which takes milliseconds even where there are none.
    """
    for family in (_socket.AF_INET, _socket.AF_INET6):
        body = struct.pack("=BBBBI48x", family, _socket.IPPROTO_TCP, 0, 0, _LISTENING)
        for kind, content in _ask(_BY_FAMILY, _REQUEST | _DUMP, body, _SOCKETS):
            if kind == _BY_FAMILY:
                (port,) = struct.unpack_from("!H", content, 4)
                yield family, content[8 : 12 if family == _socket.AF_INET else 24], port


def bring_up(index: int) -> None:
    """Start an interface."""
    _ask(_NEW_LINK, _REQUEST | _ACKNOWLEDGE, struct.pack("=BBHiII", 0, 0, 0, index, _UP, _UP))


def add_dummy(name: str) -> int:
    """Make an interface that leads nowhere, and start it: its index. OSError where the kernel has none."""
    kind = _attribute(_IFLA_LINKINFO, _attribute(_IFLA_INFO_KIND, b"dummy"))
    body = struct.pack("=BBHiII", 0, 0, 0, 0, _UP, _UP) + _attribute(_IFLA_IFNAME, name.encode() + b"\0") + kind
    _ask(_NEW_LINK, _REQUEST | _ACKNOWLEDGE | _CREATE | _EXCLUSIVE, body)
    return _socket.if_nametoindex(name)


def add_address(index: int, family: int, address: bytes) -> None:
    """Give an interface an address, without a network around it: no other machine is reached through it."""
    body = struct.pack("=BBBBI", family, 8 * len(address), _NO_DUPLICATE_DETECTION, 0, index)
    body += _attribute(_IFA_LOCAL, address) + _attribute(_IFA_ADDRESS, address)
    try:
        _ask(_NEW_ADDRESS, _REQUEST | _ACKNOWLEDGE | _CREATE | _EXCLUSIVE, body)
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise


def _ask(kind: int, flags: int, body: bytes, protocol: int = _ROUTE) -> list[tuple[int, bytes]]:
    """Send a request; the messages of the answer, each its type and content. OSError when it is refused."""
    sock = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, protocol)
    try:
        sock.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)
        messages: list[tuple[int, bytes]] = []
        while True:
            data = sock.recv(1 << 17)
            while data:
                length, kind = struct.unpack_from("=IH", data)
                content, data = data[16:length], data[(length + 3) & ~3 :]
                if kind == _ERROR:
                    number = -struct.unpack_from("=i", content)[0]
                    if number:
                        raise OSError(number, os.strerror(number))
                    return messages
                if kind == _DONE:
                    return messages
                messages.append((kind, content))
    finally:
        sock.close()


def _attribute(kind: int, content: bytes) -> bytes:
    length = 4 + len(content)
    return struct.pack("=HH", length, kind) + content + b"\0" * (-length % 4)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            return
        yield kind, data[4:length]
        data = data[(length + 3) & ~3 :]

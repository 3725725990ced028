"""A network of the experiment's own: the machine's names and addresses, and no way to another machine.

The services of this machine are reached all the same: for each port that somebody listens on outside, a socket listens
inside, at the same address, and ``relay.py`` outside takes its connections and passes on what is said. So are the
name servers. Whether they are this machine's or not, every connection is counted.

Runs in the entrance (enter.py), in a bare interpreter: standard library only, and little of it.
"""

from __future__ import annotations

import _socket
import os

TYPE_CHECKING = False  # as typing's, without the import
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from unstall.sandbox import door, kernel, netlink, thresholds
else:
    import door
    import kernel
    import netlink
    import thresholds

_DNS = 53
_MOST_AT_ONCE = 200  # descriptors in a message; the kernel takes 253
_BACKLOG = 4096

Service = tuple  # (kind of socket, family, host, port)


def enter(home: str) -> None:
    """Leave this machine's network for a new one. OSError when the kernel does not allow that.

    The process has the capabilities of its user namespace, or is root.
    """
    interfaces = _interfaces()
    services = [*_listening(), *_name_servers()]
    relay = door.call(home, "relay")
    try:
        kernel.unshare(kernel.CLONE_NEWNET)
        _furnish(interfaces, [host for _, _, host, port in services if port == _DNS])
        _hand_over(relay, services)
    finally:
        relay.close()


def _interfaces() -> dict[str, list[tuple[int, bytes]]]:
    """The machine's interfaces, but the loopback, that have addresses: by name, each address with its family."""
    by_name: dict[str, list[tuple[int, bytes]]] = {}
    for index, family, address in netlink.addresses():
        if index != netlink.LOOPBACK:
            by_name.setdefault(_socket.if_indextoname(index), []).append((family, address))
    return by_name


def _furnish(interfaces: dict[str, list[tuple[int, bytes]]], name_servers: Sequence[str]) -> None:
    """Start the loopback, and give the namespace the machine's own interfaces, as programs look for them by name."""
    netlink.bring_up(netlink.LOOPBACK)
    for name, addresses in list(interfaces.items())[: thresholds.MOST_INTERFACES]:
        try:
            index = netlink.add_dummy(name)
        except OSError:  # the kernel has no such interface: its addresses are known at least
            index = netlink.LOOPBACK
        for family, address in addresses:
            _add_address(index, family, address)
    for host in name_servers:
        family = _family(host)
        _add_address(netlink.LOOPBACK, family, _socket.inet_pton(family, host))


def _add_address(index: int, family: int, address: bytes) -> None:
    try:
        netlink.add_address(index, family, address)
    except OSError:
        pass  # a kernel without IPv6; an address that is the loopback's own


def _listening() -> Iterator[Service]:
    """What listens on this machine, in TCP."""
    for family, address, port in netlink.listening():
        yield _socket.SOCK_STREAM, family, _socket.inet_ntop(family, address), port


def _name_servers() -> Iterator[Service]:
    """As resolv.conf(5) names them; where it names none, one on this machine is meant."""
    servers = []
    try:
        with open("/etc/resolv.conf", errors="replace") as file:
            for line in file:
                words = line.split()
                if len(words) > 1 and words[0] == "nameserver" and "%" not in words[1]:
                    servers.append(words[1])
    except OSError:
        pass
    for host in dict.fromkeys(servers or ["127.0.0.1"]):
        try:
            _socket.inet_pton(_family(host), host)
        except OSError:
            continue
        for kind in (_socket.SOCK_DGRAM, _socket.SOCK_STREAM):
            yield kind, _family(host), host, _DNS


def _family(host: str) -> int:
    return _socket.AF_INET6 if ":" in host else _socket.AF_INET


def _hand_over(relay: _socket.socket, services: Sequence[Service]) -> None:
    """Listen where the services do, and give the sockets to the relay; also files that count what had no way out."""
    counters = [os.open(f"/proc/self/net/{name}", os.O_RDONLY) for name in ("snmp", "snmp6") if _has_counter(name)]
    door.send(relay, {"counters": len(counters)}, counters)
    for handle in counters:
        os.close(handle)
    # Of one port, an address of its own before any address, and IPv4 before IPv6, which may take both.
    batch: list[tuple[Service, _socket.socket]] = []
    for service in sorted(set(services), key=lambda service: (service[3], service[2] in ("0.0.0.0", "::"), service[1])):
        listener = _listen(service)
        if listener is not None:
            batch.append((service, listener))
        if len(batch) == _MOST_AT_ONCE:
            _send_batch(relay, batch)
    _send_batch(relay, batch)
    relay.send(b'{"ready": true}')
    relay.recv(16)  # from now on it listens


def _has_counter(name: str) -> bool:
    return os.path.exists(f"/proc/self/net/{name}")


def _listen(service: Service) -> _socket.socket | None:
    kind, family, host, port = service
    listener = _socket.socket(family, kind | _socket.SOCK_CLOEXEC)
    try:
        listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError:
            if family != _socket.AF_INET6:
                raise
            listener.setsockopt(_socket.IPPROTO_IPV6, _socket.IPV6_V6ONLY, 1)  # IPv4 has a service of its own
            listener.bind((host, port))
        if kind == _socket.SOCK_STREAM:
            listener.listen(_BACKLOG)
    except OSError:  # an address that this namespace does not have
        listener.close()
        return None
    return listener


def _send_batch(relay: _socket.socket, batch: list[tuple[Service, _socket.socket]]) -> None:
    if batch:
        door.send(relay, {"services": [service for service, _ in batch]}, [listener.fileno() for _, listener in batch])
    for _, listener in batch:
        listener.close()
    batch.clear()

"""Takes what experiments say to this machine's services, and to name servers, out of their network: ``relay.py HOME``.

A process of its own beside the keeper, in this machine's network, until its stdin ends. It listens on a unix socket
among the notes of the sandbox's home, for two kinds of callers:

- The entrance (network_namespace.py) hands over sockets that listen in the experiment's network. Each connection to
  one of them is made again outside, and all that is said is passed on, both ways.
- The guard in a Python process of the program (child/sandbox/network.py) asks for a socket of this machine's network,
  for a connection of an HTTP library whose requests it sees: to another machine, or to a service of this one.

All is counted by the address. Requests of HTTP other than for reading are refused, where they are seen in plain text.
A line on stdin is answered with the counts, as JSON.

Standard library only: it runs in any interpreter.
"""

from __future__ import annotations

import collections
import json
import os
import re
import select
import socket
import struct
import sys
import threading

TYPE_CHECKING = False  # as typing's, without the import
if TYPE_CHECKING:
    from typing import Any

    from unstall.child.sandbox import refusals
    from unstall.sandbox import door, thresholds
else:
    _HERE = os.path.dirname(os.path.abspath(__file__))
    sys.path[:0] = [_HERE, os.path.join(os.path.dirname(_HERE), "child", "sandbox")]
    import door
    import refusals
    import thresholds

_CHUNK_BYTES = 1 << 18
_LOOK_MS = 1000  # between two looks whether the program has ended
_REQUEST = re.compile(rb"([A-Z]{3,20}) (\S{1,4000}) HTTP/1\.[01]\r?\n")
_READING = {b"GET", b"HEAD", b"OPTIONS", b"TRACE"}


class Traffic:
    """What went to one address."""

    def __init__(self) -> None:
        self.connections = 0
        self.sent = 0
        """Bytes that the program sent, where the relay passes them on."""
        self.received = 0


class RelayServer:
    """The services of all experiments of one sandbox."""

    def __init__(self, home: str):
        self.home = home
        self.traffic: dict[str, Traffic] = collections.defaultdict(Traffic)
        self.networks: dict[int, Network] = {}
        self.unreachable = 0
        """Connections and datagrams that had no way out, in networks that are gone."""
        self.lock = threading.Lock()
        self.door = socket.socket(fileno=door.open_door(home, "relay").detach())

    def serve(self) -> None:
        """Take callers, for ever."""
        while True:
            caller, _ = self.door.accept()
            _in_background(self.answer, caller)

    def answer(self, caller: socket.socket) -> None:
        """Do what one caller asks for."""
        pid = struct.unpack("3i", caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        network: Network | None = None
        with caller:
            while True:
                message, handles = door.receive(caller)
                if message is None:
                    return
                if "lend" in message:
                    self.lend(caller, pid, message["lend"])
                    continue
                network = network or Network(self)
                if "counters" in message:
                    network.counters += handles
                elif "services" in message:
                    network.services += list(zip(message["services"], handles))
                elif "ready" in message:
                    with self.lock:
                        self.networks[_network_of(pid)] = network
                    _in_background(network.serve, pid)
                    caller.send(b"ready")

    def lend(self, caller: socket.socket, pid: int, wanted: list[Any]) -> None:
        """Give a socket of this machine's network, or nothing where the address is the experiment's own."""
        family, kind, protocol, host, port = wanted
        network = self.networks.get(_network_of(pid))
        if _is_own(family, host) and not (network and network.has(port)):
            caller.send(b"{}")
            return
        with self.lock:
            self.traffic[name_of(host, port)].connections += 1
        with socket.socket(family, kind, protocol) as lent:
            door.send(caller, {}, [lent.fileno()])

    def count(self, address: str, sent: int = 0, received: int = 0, connections: int = 0) -> None:
        """Add to what went to an address."""
        with self.lock:
            traffic = self.traffic[address]
            traffic.connections += connections
            traffic.sent += sent
            traffic.received += received

    def totals(self) -> dict[str, Any]:
        """All counts until now."""
        with self.lock:
            lost = self.unreachable + sum(network.unreachable() for network in self.networks.values())
            return {"unreachable": lost, "traffic": {name: vars(traffic) for name, traffic in self.traffic.items()}}


class Network:
    """The sockets that listen in one experiment's network."""

    def __init__(self, relay: RelayServer):
        self.relay = relay
        self.services: list[tuple[list[Any], int]] = []
        self.counters: list[int] = []

    def has(self, port: int) -> bool:
        """Whether a service of this machine is reached at a port of the experiment's."""
        return any(service[0] == socket.SOCK_STREAM and service[3] == port for service, _ in self.services)

    def unreachable(self) -> int:
        """Connections and datagrams that had no way out, of IP and IPv6."""
        return sum(_no_routes(counter) for counter in self.counters)

    def serve(self, pid: int) -> None:
        """Take connections until the program ends."""
        watched = select.poll()
        number = _network_of(pid)
        services = {}
        for (kind, family, host, port), handle in self.services:
            services[handle] = socket.socket(family, kind, fileno=handle), host, port
            watched.register(handle, select.POLLIN)
        while _is_in(pid, number):
            for handle, _ in watched.poll(_LOOK_MS):
                self.take(*services[handle])
        for listener, _, _ in services.values():
            listener.close()
        with self.relay.lock:
            self.relay.unreachable += self.unreachable()
            for counter in self.counters:
                os.close(counter)
            self.counters.clear()
            self.services.clear()

    def take(self, listener: socket.socket, host: str, port: int) -> None:
        """Pass on what came: a connection, or a question to a name server."""
        try:
            if listener.type == socket.SOCK_DGRAM:
                question, asker = listener.recvfrom(1 << 16)
                _in_background(self.ask, listener, question, asker, host, port)
            else:
                inner, _ = listener.accept()
                _in_background(self.connect, inner, port)
        except OSError:
            pass  # gone again

    def ask(self, listener: socket.socket, question: bytes, asker: Any, host: str, port: int) -> None:
        with socket.socket(listener.family, socket.SOCK_DGRAM) as outer:
            outer.settimeout(thresholds.SERVICE_S)
            outer.connect((host, port))
            outer.send(question)
            listener.sendto(outer.recv(1 << 16), asker)

    def connect(self, inner: socket.socket, port: int) -> None:
        """Connect to the service that the program means, and pass on what is said until both have ended."""
        host = inner.getsockname()[0].removeprefix("::ffff:")
        address = name_of(host, port)
        self.relay.count(address, connections=1)
        with inner, socket.create_connection((host, port), thresholds.SERVICE_S) as outer:
            outer.settimeout(None)
            for sock in (inner, outer):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = _in_background(self.pass_back, outer, inner, address)
            self.pass_on(inner, outer, address)
            back.join()

    def pass_on(self, inner: socket.socket, outer: socket.socket, address: str) -> None:
        """From the program to the service."""
        try:
            while data := inner.recv(_CHUNK_BYTES):
                request = _REQUEST.match(data)
                if request and request[1] not in _READING:
                    method, path = (part.decode(errors="replace") for part in request.groups())
                    refusals.note(self.relay.home, f"{method} http://{address}{path.partition('?')[0]}")
                    _hang_up(inner, outer)
                    return
                outer.sendall(data)
                self.relay.count(address, sent=len(data))
            outer.shutdown(socket.SHUT_WR)
        except OSError:
            _hang_up(inner, outer)

    def pass_back(self, outer: socket.socket, inner: socket.socket, address: str) -> None:
        """From the service to the program."""
        try:
            while data := outer.recv(_CHUNK_BYTES):
                inner.sendall(data)
                self.relay.count(address, received=len(data))
            inner.shutdown(socket.SHUT_WR)
        except OSError:
            _hang_up(inner, outer)


def name_of(host: str, port: int) -> str:
    """An address as people write it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _no_routes(counter: int) -> int:
    """The count in /proc/net/snmp, whose lines are pairs of names and values, or in snmp6, a name and a value each."""
    lines = os.pread(counter, 1 << 16, 0).decode().splitlines()
    for number, line in enumerate(lines):
        words = line.split()
        if words[0] == "Ip6OutNoRoutes":
            return int(words[1])
        if words[0] == "Ip:" and "OutNoRoutes" in words:
            return int(lines[number + 1].split()[words.index("OutNoRoutes")])
    return 0


def _network_of(pid: int) -> int:
    """The number of the network namespace that a process is in."""
    return os.stat(f"/proc/{pid}/ns/net").st_ino


def _is_in(pid: int, network: int) -> bool:
    try:
        return _network_of(pid) == network
    except OSError:
        return False


def _is_own(family: int, host: str) -> bool:
    """Whether an address, or what a name stands for, is this machine's: only then can a socket be bound to it."""
    try:
        for _, _, _, _, address in socket.getaddrinfo(host, 0, family, socket.SOCK_DGRAM):
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.bind(address)
            return True
    except OSError:
        pass
    return False


def _hang_up(*socks: socket.socket) -> None:
    """End a connection in both directions: whoever waits for it wakes up."""
    for sock in socks:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def _in_background(action: Any, *arguments: Any) -> threading.Thread:
    def act() -> None:
        try:
            action(*arguments)
        except (OSError, ValueError):
            pass  # an experiment that has ended meanwhile, a service that does not answer

    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


def main(home: str) -> None:
    """Serve until stdin ends."""
    relay = RelayServer(home)
    _in_background(relay.serve)
    os.write(1, b"ready\n")
    for _line in sys.stdin.buffer:
        os.write(1, json.dumps(relay.totals()).encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1])

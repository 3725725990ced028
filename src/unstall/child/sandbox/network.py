"""Keeps a program from writing to the outside: what it would send again in an experiment has been sent once already.

Refused, with the error that a network that is down would give, and a note for the report:

- HTTP requests other than GET, HEAD, OPTIONS and TRACE, to anywhere, the machine itself included: in ``http.client``
  (and so urllib, requests, urllib3, botocore), httpx and aiohttp;
- mail (smtplib), and connections and datagrams of Python sockets to other machines, except DNS, and except the
  connections of those HTTP libraries.

Not seen: what C code sends (collectives, gRPC, database drivers in C), and programs that are not Python. Where the
experiment has a network of its own (sandbox/network_namespace.py), these reach no other machine. The connections of
those HTTP libraries are then made through sockets of the machine's network, which the relay lends.
"""

from __future__ import annotations

import contextvars
import functools
import sys
from typing import TYPE_CHECKING, Any

from unstall.child.importhook import PostImport
from unstall.child.sandbox import audit, lending
from unstall.child.sandbox.refusals import note

if TYPE_CHECKING:
    import socket
    from types import ModuleType

READING = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_HTTP = ("http.client", "urllib3", "httpcore", "httpx", "aiohttp")
_DNS = 53
_STREAM = 1  # socket.SOCK_STREAM, without the import
_LONGEST_LINE = 4096
_DEEPEST = 60  # frames: an asyncio connection lies some twenty below the request


_in_request: contextvars.ContextVar[bool] = contextvars.ContextVar("unstall_in_request", default=False)
"""Set in the tasks that an asynchronous HTTP library makes for a request, which do not show in each other's frames."""


class Refusal:
    """Says no, and notes it."""

    def __init__(self, home: str, relayed: bool):
        self.home = home
        self.relayed = relayed

    def error(self, what: str) -> OSError:
        """What a refused connection raises."""
        import errno

        note(self.home, what)
        return ConnectionRefusedError(errno.ECONNREFUSED, f"unstall does not repeat this in an experiment: {what}")


def install(home: str, *, relayed: bool) -> None:
    """Refuse from here on, in this process and those it forks; ``relayed``: it is in a network of its own."""
    refusal = Refusal(home, relayed)
    audit.listen(
        {
            "socket.connect": functools.partial(_on_connect, refusal),
            "socket.sendto": functools.partial(_on_send, refusal),
            "socket.sendmsg": functools.partial(_on_send, refusal),
            "smtplib.connect": functools.partial(_on_mail, refusal),
        }
    )
    hook = PostImport(
        {
            "http.client": [functools.partial(_guard_http_client, refusal)],
            "httpx": [functools.partial(_guard_httpx, refusal)],
            "aiohttp": [functools.partial(_guard_aiohttp, refusal)],
            "wandb": [_guard_wandb],
        },
        lambda name, error: note(home, f"nothing: requests of {name} are not watched: {error!r}"),
    )
    sys.meta_path.insert(0, hook)
    hook.install_loaded()


def _guard_http_client(refusal: Refusal, module: ModuleType) -> None:
    original = module.HTTPConnection.putrequest

    @functools.wraps(original)
    def putrequest(self: Any, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
        if method.upper() not in READING:
            scheme = "https" if isinstance(self, getattr(module, "HTTPSConnection", ())) else "http"
            address = url if "://" in url else f"{scheme}://{_host(self.host)}:{self.port}{url}"
            raise refusal.error(f"{method.upper()} {_without_secrets(address)}")
        return original(self, method, url, *args, **kwargs)

    def send(self: Any, data: Any) -> Any:
        # Not by way of putrequest: a program that writes its request itself. A proxy is asked in this way too.
        if self._HTTPConnection__state == "Idle" and isinstance(data, (bytes, bytearray)):
            method, _, rest = bytes(data[:_LONGEST_LINE]).partition(b" ")
            if method.isalpha() and method.decode() not in READING | {"CONNECT"}:
                path = rest.partition(b" ")[0].decode(errors="replace")
                raise refusal.error(
                    f"{method.decode()} {_without_secrets(f'http://{_host(self.host)}:{self.port}{path}')}"
                )
        return sending(self, data)

    sending = module.HTTPConnection.send
    module.HTTPConnection.send = functools.wraps(sending)(send)
    module.HTTPConnection.putrequest = putrequest


def _guard_httpx(refusal: Refusal, module: ModuleType) -> None:
    sync, asynchronous = module.HTTPTransport.handle_request, module.AsyncHTTPTransport.handle_async_request

    def look(request: Any) -> None:
        if request.method.upper() not in READING:
            error = refusal.error(f"{request.method.upper()} {_without_secrets(str(request.url))}")
            raise module.ConnectError(str(error), request=request)

    @functools.wraps(sync)
    def handle_request(self: Any, request: Any) -> Any:
        look(request)
        return sync(self, request)

    @functools.wraps(asynchronous)
    async def handle_async_request(self: Any, request: Any) -> Any:
        look(request)
        token = _in_request.set(True)
        try:
            return await asynchronous(self, request)
        finally:
            _in_request.reset(token)

    module.HTTPTransport.handle_request = handle_request
    module.AsyncHTTPTransport.handle_async_request = handle_async_request


def _guard_aiohttp(refusal: Refusal, module: ModuleType) -> None:
    original = module.ClientSession._request

    @functools.wraps(original)
    async def _request(self: Any, method: str, str_or_url: Any, **kwargs: Any) -> Any:
        if method.upper() not in READING:
            error = refusal.error(f"{method.upper()} {_without_secrets(str(str_or_url))}")
            raise module.ClientConnectionError(str(error))
        token = _in_request.set(True)
        try:
            return await original(self, method, str_or_url, **kwargs)
        finally:
            _in_request.reset(token)

    module.ClientSession._request = _request


def _guard_wandb(module: ModuleType) -> None:
    """Its environment variable yields to ``wandb.init(mode="online")``; its service is not Python."""
    trackers: Any = module
    original = trackers.init

    @functools.wraps(original)
    def init(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("mode") not in (None, "disabled"):
            kwargs["mode"] = "offline"
        return original(*args, **kwargs)

    trackers.init = init


def _on_connect(refusal: Refusal, sock: socket.socket, address: Any) -> None:
    host, port = _address(sock, address)
    if port == _DNS or not host:
        return
    if sock.type == _STREAM and _in_http_client():
        if refusal.relayed:
            lending.borrow(refusal.home, sock, host, port)
        return
    # Connecting a datagram socket sends nothing: it is how programs ask for their own address.
    if sock.type == _STREAM and _is_elsewhere(host):
        raise refusal.error(f"a connection to {_host(host)}:{port}")


def _on_send(refusal: Refusal, sock: socket.socket, address: Any) -> None:
    if address is None:
        return
    host, port = _address(sock, address)
    if _is_elsewhere(host) and port != _DNS:
        raise refusal.error(f"a datagram to {_host(host)}:{port}")


def _on_mail(refusal: Refusal, _smtp: Any, host: str, port: int) -> None:
    raise refusal.error(f"mail through {_host(host)}:{port}")


def _address(sock: socket.socket, address: Any) -> tuple[str, int]:
    """Host and port of an internet address; empty of any other, which is this machine's."""
    import socket

    if sock.family in (socket.AF_INET, socket.AF_INET6) and isinstance(address, tuple) and len(address) >= 2:
        return str(address[0]), int(address[1])
    return "", 0


def _is_elsewhere(host: str) -> bool:
    """Whether an address is not the machine's own."""
    if host in ("", "localhost"):
        return False
    import ipaddress

    try:
        return not ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return not host.startswith("localhost.")


def _in_http_client() -> bool:
    """Whether an HTTP library that is watched makes this connection."""
    if _in_request.get():
        return True
    frame = sys._getframe(1)
    for _ in range(_DEEPEST):
        if frame is None:
            return False
        name = frame.f_globals.get("__name__", "")
        if name.startswith(_HTTP):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _without_secrets(url: str) -> str:
    """A URL without what may be secret in it: user, password and query."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url.partition("?")[0]
    authority, slash, path = rest.partition("?")[0].partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host

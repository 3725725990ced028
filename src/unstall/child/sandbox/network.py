"""Keeps a program from writing to the outside: what it would send again in an experiment has been sent once already.

Refused, with the error that a network that is down would give, and a note for the report:

- HTTP requests other than GET, HEAD, OPTIONS and TRACE, to anywhere, the machine itself included: in ``http.client``
  (and so urllib, requests, urllib3, botocore), httpx and aiohttp;
- mail (smtplib), and connections and datagrams of Python sockets to other machines, except DNS, and except the
  connections of those HTTP libraries.

Not seen: what C code sends (collectives, gRPC, database drivers in C), and programs that are not Python.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from unstall.child.importhook import PostImport
from unstall.child.sandbox import audit
from unstall.child.sandbox.refusals import note

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import ModuleType

READING = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_HTTP = ("http.client", "urllib3", "httpcore", "httpx", "aiohttp", "aiohappyeyeballs", "anyio")
_DNS = 53
_STREAM = 1  # socket.SOCK_STREAM, without the import
_DEEPEST = 60  # frames: an asyncio connection lies some twenty below the request


class Refusal:
    """Says no, and notes it."""

    def __init__(self, home: str):
        self.home = home

    def error(self, what: str) -> OSError:
        """What a refused connection raises."""
        import errno

        note(self.home, what)
        return ConnectionRefusedError(errno.ECONNREFUSED, f"unstall does not repeat this in an experiment: {what}")

    def of_request(self, method: str, url: str) -> OSError | None:
        """What a request raises that would write; None for one that only reads."""
        method = method.upper()
        return None if method in READING else self.error(f"{method} {_without_secrets(url)}")


def install(home: str) -> None:
    """Refuse from here on, in this process and those it forks."""
    refusal = Refusal(home)
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
    def look(connection: Any, method: str, url: str, *_: Any, **__: Any) -> None:
        scheme = "https" if isinstance(connection, getattr(module, "HTTPSConnection", ())) else "http"
        address = url if "://" in url else f"{scheme}://{_host(connection.host)}:{connection.port}{url}"
        if error := refusal.of_request(method, address):
            raise error

    _look_before(module.HTTPConnection, "putrequest", look)


def _guard_httpx(refusal: Refusal, module: ModuleType) -> None:
    def look(_: Any, request: Any) -> None:
        if error := refusal.of_request(request.method, str(request.url)):
            raise module.ConnectError(str(error), request=request)

    _look_before(module.HTTPTransport, "handle_request", look)
    _look_before(module.AsyncHTTPTransport, "handle_async_request", look, asynchronous=True)


def _guard_aiohttp(refusal: Refusal, module: ModuleType) -> None:
    def look(_: Any, method: str, str_or_url: Any, **__: Any) -> None:
        if error := refusal.of_request(method, str(str_or_url)):
            raise module.ClientConnectionError(str(error))

    _look_before(module.ClientSession, "_request", look, asynchronous=True)


def _look_before(owner: Any, name: str, look: Callable[..., None], *, asynchronous: bool = False) -> None:
    """Call ``look`` with the arguments of each call of a method, before it; what it raises is raised instead."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        look(*args, **kwargs)
        return original(*args, **kwargs)

    @functools.wraps(original)
    async def async_method(*args: Any, **kwargs: Any) -> Any:
        look(*args, **kwargs)
        return await original(*args, **kwargs)

    setattr(owner, name, async_method if asynchronous else method)


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
    if not _is_elsewhere(host) or port == _DNS:
        return
    # Connecting a datagram socket sends nothing: it is how programs ask for their own address.
    if sock.type != _STREAM or _in_http_client():
        return
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

"""Servers: each request, from when the program has it until it has been answered. Between them lies the phase `idle`.

Requests of an asynchronous server take turns on one thread, and others are handled in threads of their own: so each is
a mark at its end, whose argument is for how many nanoseconds it went on.
"""

from __future__ import annotations

import functools
import threading
from time import perf_counter_ns
from typing import Any

from unstall.child.recording import native, seam_ready
from unstall.records.vocabulary import Seam

REQUEST = Seam("~request")


class _Request:
    """A request is handled in a ``with`` block of it."""

    def __enter__(self) -> None:
        self.began_ns = perf_counter_ns()

    def __exit__(self, *error: object) -> None:
        _ended(self.began_ns)


def _ended(began_ns: int) -> None:
    """A request has been answered that came at this time."""
    number = native.intern(REQUEST.event)
    native.begin(number)
    native.end(number, perf_counter_ns() - began_ns)


def _install_asgi(module: Any) -> None:
    """Starlette, and what is derived from it: FastAPI, BentoML, Gradio."""
    seam_ready()
    original = module.Starlette.__call__

    @functools.wraps(original)
    async def __call__(self: Any, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await original(self, scope, receive, send)
            return
        with _Request():
            await original(self, scope, receive, send)

    module.Starlette.__call__ = __call__


def _install_aiohttp(module: Any) -> None:
    seam_ready()
    original = module.Application._handle

    @functools.wraps(original)
    async def _handle(self: Any, request: Any) -> Any:
        with _Request():
            return await original(self, request)

    module.Application._handle = _handle


def _install_wsgi(module: Any) -> None:
    """Flask."""
    seam_ready()
    original = module.Flask.__call__

    @functools.wraps(original)
    def __call__(self: Any, environ: Any, start_response: Any) -> Any:
        with _Request():
            return original(self, environ, start_response)

    module.Flask.__call__ = __call__


def _install_http(module: Any) -> None:
    """The standard library's: a request has come where its first line is read, for which a handler waits."""
    seam_ready()
    handler = module.BaseHTTPRequestHandler
    parse, handle = handler.parse_request, handler.handle_one_request
    own = threading.local()

    @functools.wraps(parse)
    def parse_request(self: Any) -> Any:
        own.began = perf_counter_ns()
        return parse(self)

    @functools.wraps(handle)
    def handle_one_request(self: Any) -> Any:
        own.began = None
        try:
            return handle(self)
        finally:
            if own.began is not None:
                _ended(own.began)

    handler.parse_request, handler.handle_one_request = parse_request, handle_one_request


def _install_litserve(module: Any) -> None:
    """A worker tells when it begins with a request, and puts each part of an answer."""
    seam_ready()
    original = module.LitLoop.put_response
    began: dict[Any, int] = {}

    @functools.wraps(original)
    def put_response(
        self: Any, transport: Any, response_queue_id: Any, uid: Any, response_data: Any, status: Any, response_type: Any
    ) -> None:
        name = getattr(status, "name", status)  # a word, or one of an enumeration
        if name == "START":
            began[uid] = perf_counter_ns()
        original(self, transport, response_queue_id, uid, response_data, status, response_type)
        is_last = name in ("ERROR", "FINISH_STREAMING") or getattr(response_type, "name", "") == "REGULAR"
        if name != "START" and is_last and uid in began:
            _ended(began.pop(uid))

    module.LitLoop.put_response = put_response


SEAMS = (REQUEST,)
TARGETS = {
    "starlette.applications": _install_asgi,
    "aiohttp.web_app": _install_aiohttp,
    "flask.app": _install_wsgi,
    "http.server": _install_http,
    "litserve.loops.base": _install_litserve,
}

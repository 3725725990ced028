"""Each request of a server is marked at its end, and the server still is what it was."""

from __future__ import annotations

import asyncio
import http.client
import http.server
import threading
from types import SimpleNamespace

import pytest

from unstall.child.seams import servers

MS = 1_000_000


def marks(recorded):
    """Milliseconds of each request."""
    assert set(recorded.names()) <= {servers.REQUEST.event}
    return [arg / MS for arg in recorded.spans()["arg"].tolist()]


def starlette():
    class Starlette:
        async def __call__(self, scope, receive, send):
            """As it is."""
            await asyncio.sleep(0.01)
            if scope["type"] == "http" and scope["path"] == "/fails":
                raise KeyError(scope["path"])

    return SimpleNamespace(Starlette=Starlette)


def test_requests_that_take_turns_on_one_thread_are_each_marked(recorded):
    library = starlette()
    servers.TARGETS["starlette.applications"](library)
    app = library.Starlette()

    async def both():
        await asyncio.gather(*(app({"type": "http", "path": "/"}, None, None) for _ in range(2)))
        await app({"type": "lifespan"}, None, None)

    asyncio.run(both())
    took = marks(recorded)
    assert len(took) == 2 and all(ms >= 9 for ms in took)
    assert asyncio.iscoroutinefunction(library.Starlette.__call__) and library.Starlette.__call__.__doc__ == "As it is."


def test_a_request_that_fails_is_marked_and_fails(recorded):
    library = starlette()
    servers.TARGETS["starlette.applications"](library)
    with pytest.raises(KeyError, match="/fails"):
        asyncio.run(library.Starlette()({"type": "http", "path": "/fails"}, None, None))
    assert len(marks(recorded)) == 1


def test_requests_of_aiohttp_and_flask(recorded):
    class Application:
        async def _handle(self, request):
            return request.upper()

    class Flask:
        def __call__(self, environ, start_response):
            return [environ, start_response]

    servers.TARGETS["aiohttp.web_app"](SimpleNamespace(Application=Application))
    servers.TARGETS["flask.app"](SimpleNamespace(Flask=Flask))
    assert asyncio.run(Application()._handle("get")) == "GET"
    assert Flask()("environ", start_response="start") == ["environ", "start"]
    assert len(marks(recorded)) == 2


def test_a_handler_of_the_standard_library_waits_for_a_line_first(recorded):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *words):
            """Nothing."""

    module = SimpleNamespace(BaseHTTPRequestHandler=Handler)
    servers.TARGETS["http.server"](module)
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        connection = http.client.HTTPConnection(*server.server_address)
        for _ in range(3):
            connection.request("GET", "/")
            assert connection.getresponse().read() == b"ok"
        connection.close()
        server.shutdown()
        thread.join()
    assert len(marks(recorded)) == 3


def litserve():
    sent = []

    class LitLoop:
        def put_response(self, transport, response_queue_id, uid, response_data, status, response_type):
            sent.append((uid, response_data))

    servers.TARGETS["litserve.loops.base"](SimpleNamespace(LitLoop=LitLoop))

    def put(uid, data, status, kind="REGULAR"):
        LitLoop().put_response(None, 0, uid, data, status=status, response_type=SimpleNamespace(name=kind))

    return put, sent


def test_a_worker_of_litserve_has_a_request_from_its_start_to_its_answer(recorded):
    put, sent = litserve()
    put(1, (), "START")
    put(1, "answer", "OK")
    put(2, "never begun", "OK")
    put(3, (), "START")
    put(3, "failed", "ERROR")
    assert len(marks(recorded)) == 2 and [data for _, data in sent] == [(), "answer", "never begun", (), "failed"]


def test_an_answer_in_parts_ends_with_the_last(recorded):
    put, _ = litserve()
    put(1, (), "START", "STREAMING")
    put(1, "part", "OK", "STREAMING")
    put(1, "part", "OK", "STREAMING")
    assert not recorded.names()
    put(1, "", "FINISH_STREAMING", "STREAMING")
    assert len(marks(recorded)) == 1

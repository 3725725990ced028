"""Connections kept open, and samples fetched at the same time: the same answers, by fewer connections, in order."""

from __future__ import annotations

import http.server
import threading
from typing import ClassVar

import pytest

from unstall.optimize.remedies.concurrent_fetch import unsafe_to_share, with_threads
from unstall.optimize.remedies.keep_alive import with_session
from unstall.optimize.sources import SourceError, Sources


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    connections: ClassVar[set] = set()
    cookies: ClassVar[list] = []

    def do_GET(self):
        self.connections.add(self.client_address)
        self.cookies.append(self.headers.get("Cookie"))
        body = self.path.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Set-Cookie", "visited=1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    handler = type("Fresh", (Handler,), {"connections": set(), "cookies": []})
    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    serving.daemon_threads = True
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{serving.server_port}", handler
    serving.shutdown()
    serving.server_close()


REMOTE = '''"""Remote."""
import requests


class Remote:
    def __init__(self, base):
        self.base = base

    def __getitem__(self, index):
        response = requests.get(f"{self.base}/{index}", timeout=10)  # one by one
        return response.text
'''


def space_of(tmp_path, sources, path):
    space: dict = {"__name__": "remote"}
    exec(compile(sources.bytes_of(path), str(path), "exec"), space)
    return space


def test_requests_go_over_one_connection_and_keep_no_cookies(tmp_path, server):
    pytest.importorskip("requests")
    address, handler = server
    path = tmp_path / "remote.py"
    path.write_text(REMOTE)
    sources, count = with_session(Sources(), path)
    assert (
        count == 1 and b"_kept_session().get(f" in sources.bytes_of(path) and b"# one by one" in sources.bytes_of(path)
    )
    remote = space_of(tmp_path, sources, path)["Remote"](address)
    assert [remote[index] for index in range(5)] == [f"/{index}" for index in range(5)]
    assert len(handler.connections) == 1 and handler.cookies == [None] * 5


def test_a_file_without_requests_stays_as_it_is(tmp_path):
    path = tmp_path / "local.py"
    path.write_text("import requests\n\nsession = requests.Session()\nsession.get('x')\n")
    sources, count = with_session(Sources(), path)
    assert not count and sources == Sources()


def line_of(text):
    return next(number for number, line in enumerate(text.splitlines(), 1) if "def __getitem__" in line)


def test_a_batch_is_fetched_by_threads_in_its_order(tmp_path):
    text = REMOTE.replace("import requests\n", "import time\n").replace(
        'response = requests.get(f"{self.base}/{index}", timeout=10)', "response = self.fetch(index)"
    )
    text = text.replace("response.text", "response")
    text += "\n    def fetch(self, index):\n        return self.base + index\n"
    path = tmp_path / "remote.py"
    path.write_text(text)
    assert unsafe_to_share(text, line_of(text)) == "Remote"
    sources = with_threads(Sources(), path, line_of(text))
    remote = space_of(tmp_path, sources, path)["Remote"](100)
    assert remote.__getitems__([3, 1, 2]) == [103, 101, 102]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return random.random()", "random"),
        ("self.last = index\n        return index", "sets last"),
        ("return self.file.read(index)", "open"),
        ("return self.rows.execute(index)", "open"),
        ("return self.mode + index", "mode is changed"),
    ],
)
def test_what_threads_may_not_do_at_once(body, reason):
    text = f"""
class Remote:
    def __init__(self):
        self.mode = 1

    def switch(self):
        self.mode = 2

    def __getitem__(self, index):
        {body}
"""
    with pytest.raises(SourceError, match=reason):
        unsafe_to_share(text, line_of(text))

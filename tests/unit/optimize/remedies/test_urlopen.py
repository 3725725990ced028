"""urlopen on connections kept open: the same answers and errors, by fewer connections."""

from __future__ import annotations

import http.client
import http.server
import io
import os
import socket
import threading
import urllib.error
import urllib.request
from typing import ClassVar

import pytest

from unstall.optimize.remedies.keep_alive import with_opener
from unstall.optimize.sources import SourceError, Sources

SOURCE = '''"""Remote."""
import json
import urllib.request


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as response:  # one by one
        return response.read()
'''


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    connections: ClassVar[set] = set()
    bodies: ClassVar[list] = []

    def do_GET(self):
        self.connections.add(self.client_address)
        kind = self.path.strip("/").partition("/")[0]
        if kind == "moved":
            self.answer(302, b"see there", Location="/plain/there")
        elif kind == "missing":
            self.answer(404, b"nothing here")
        elif kind == "empty":
            self.answer(200, b"")
        elif kind == "last":
            self.answer(200, b"goodbye", Connection="close")
        elif kind == "drop":
            self.answer(200, b"gone")
            self.close_connection = True  # and does not say so
        elif kind == "chunked":
            self.answer(200, None, **{"Transfer-Encoding": "chunked"})
            for part in (b"one\n", b"two\n", b""):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        elif kind == "slow":
            self.connections.discard(self.client_address)
            self.close_connection = True
            self.rfile.read(1)
        elif kind == "agent":
            self.answer(200, str(self.headers["X-Mine"]).encode())
        else:
            self.answer(200, self.path.encode() * 3)

    def do_POST(self):
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(200, b"taken")

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if body is not None:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if body is not None:
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    handler = type("Fresh", (Handler,), {"connections": set(), "bodies": []})
    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    serving.daemon_threads = True
    threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{serving.server_port}", handler
    serving.shutdown()
    serving.server_close()


def changed(tmp_path, text=SOURCE):
    """(the file's text with calls changed, how many they are)."""
    path = tmp_path / "remote.py"
    path.write_text(text)
    sources, count = with_opener(Sources(), path)
    return sources.bytes_of(path).decode(), count


@pytest.fixture
def space(tmp_path):
    """The changed file's names."""
    found: dict = {"__name__": "remote"}
    text, count = changed(tmp_path)
    assert count == 1
    exec(compile(text, "remote.py", "exec"), found)
    return found


@pytest.fixture
def kept(space):
    """What urlopen becomes."""
    return space["_urlopen"]


def everything(urlopen, url):
    """All that can be asked of an answer."""
    try:
        with urlopen(url, timeout=10) as answer:
            body = answer.read()
            headers = {name: value for name, value in answer.headers.items() if name not in ("Date", "Connection")}
            told = (answer.status, answer.reason, answer.msg, answer.getcode(), answer.url, answer.geturl())
            return body, headers, told, answer.version, isinstance(answer, http.client.HTTPResponse)
    except urllib.error.HTTPError as error:
        return error.code, error.reason, error.read(), error.url


def test_one_connection_for_all(kept, server, tmp_path):
    address, handler = server
    for index in range(5):
        assert kept(f"{address}/{index}", timeout=10).read() == f"/{index}".encode() * 3
    assert len(handler.connections) == 1
    text, _ = changed(tmp_path)
    assert "with _urlopen(url, timeout=10) as response:  # one by one" in text
    assert "unstall" not in text


@pytest.mark.parametrize("kind", ["plain", "moved", "missing", "empty", "last", "drop", "chunked"])
def test_answers_and_errors_are_those_of_urlopen(kept, server, kind):
    address, _ = server
    wanted = everything(urllib.request.urlopen, f"{address}/{kind}")
    assert [everything(kept, f"{address}/{kind}") for _ in range(3)] == [wanted] * 3


def test_redirects_and_errors_that_are_read_stay_on_the_connection(kept, server):
    address, handler = server
    for _ in range(3):
        everything(kept, f"{address}/moved")
        everything(kept, f"{address}/missing")
        everything(kept, f"{address}/chunked")
    assert len(handler.connections) == 1


def test_what_the_server_closed_is_opened_again(kept, server):
    address, handler = server
    assert [everything(kept, f"{address}/drop")[0] for _ in range(3)] == [b"gone"] * 3
    assert len(handler.connections) == 3


@pytest.mark.parametrize("read", [lambda answer: None, lambda answer: answer.read(2), lambda answer: next(answer)])
@pytest.mark.parametrize("path", ["plain", "chunked"])
@pytest.mark.parametrize("closed", [True, False])
def test_an_answer_that_is_not_read_to_its_end_is_left_alone(kept, server, path, read, closed):
    address, _ = server
    first = kept(f"{address}/{path}")
    read(first)
    if closed:
        first.close()
    second = kept(f"{address}/other")
    assert second.read() == b"/other" * 3
    if not closed:
        wanted = urllib.request.urlopen(f"{address}/{path}")
        read(wanted)
        assert first.read() == wanted.read()
    assert kept(f"{address}/more").read() == b"/more" * 3


def test_only_so_many_connections_are_kept(kept, server, space):
    address, _ = server
    held = [kept(f"{address}/plain", timeout=seconds) for seconds in range(10, 40)]
    (handlers,) = [one for one in space["_kept_open"].opener.handlers if hasattr(one, "kept")]
    assert len(handlers.kept) == 16
    assert [one.read() for one in held] == [b"/plain" * 3] * 30


def test_requests_with_headers_and_with_bodies(kept, server):
    address, handler = server
    for value in ("a", "b"):
        assert kept(urllib.request.Request(f"{address}/agent", headers={"X-Mine": value})).read() == value.encode()
    assert kept(f"{address}/post", b"body", 5).read() == b"taken"
    assert handler.bodies == [b"body"] and len(handler.connections) == 1


def test_iteration_and_other_readers(kept, server):
    address, _ = server
    assert list(kept(f"{address}/chunked")) == [b"one\n", b"two\n"]
    assert io.TextIOWrapper(kept(f"{address}/chunked")).read() == "one\ntwo\n"


def test_what_fails_fails_as_urlopen_does(kept, server):
    address, _ = server
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(urllib.error.URLError, match="refused"):
            kept(f"http://127.0.0.1:{unused.getsockname()[1]}/")
    with pytest.raises(TimeoutError):
        kept(f"{address}/slow", timeout=0.2)
    assert kept(f"{address}/after").read() == b"/after" * 3
    with pytest.raises(ValueError, match="unknown url type"):
        kept("nowhere")
    assert kept("data:text/plain,hello").read() == b"hello"


def test_a_proxy_is_asked_as_ever(kept, server, monkeypatch):
    address, handler = server
    monkeypatch.setenv("http_proxy", address)
    assert kept("http://somewhere.invalid/x").read() == b"http://somewhere.invalid/x" * 3
    assert kept("http://somewhere.invalid/y").read() == b"http://somewhere.invalid/y" * 3
    assert len(handler.connections) == 2


def test_each_thread_and_each_process_has_its_own(kept, server):
    address, handler = server
    kept(f"{address}/0").read()
    thread = threading.Thread(target=lambda: kept(f"{address}/1").read())
    thread.start()
    thread.join()
    assert len(handler.connections) == 2
    pid = os.fork()
    if not pid:
        os._exit(kept(f"{address}/2").read() != b"/2" * 3)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(handler.connections) == 3
    assert kept(f"{address}/3").read() == b"/3" * 3
    assert len(handler.connections) == 3


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("from urllib.request import urlopen\nurlopen(url)\n", "_urlopen(url)\n"),
        ("from urllib.request import urlopen as get, Request\nget(Request(url))\n", "_urlopen(Request(url))\n"),
        ("from urllib import request\nrequest.urlopen(url, None, 3)\n", "_urlopen(url, None, 3)\n"),
        ("import urllib.request as ur\nur.urlopen(url, timeout=3)\n", "_urlopen(url, timeout=3)\n"),
    ],
)
def test_however_it_is_imported(tmp_path, text, wanted):
    made, count = changed(tmp_path, text)
    assert count == 1 and made.endswith(wanted)


@pytest.mark.parametrize(
    "text",
    [
        "from library import urlopen\nurlopen(url)\n",
        "import urllib.request\nurllib.request.urlopen(url, context=mine)\n",
        "import urllib.request\nurllib.request.urlopen(*args)\n",
        "import urllib.request\nurllib.request.urlopen(url=url)\n",
        "import urllib.request\nopener = urllib.request.urlopen\n",
    ],
)
def test_other_calls_stay_as_they_are(tmp_path, text):
    assert changed(tmp_path, text) == (text, 0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import urllib.request\nurllib.request.install_opener(mine)\nurllib.request.urlopen(url)\n", "opener"),
        ("from urllib.request import urlopen\ndef f(urlopen):\n    urlopen(url)\n", "urlopen for something else"),
        ("from urllib.request import urlopen\n_urlopen = 1\nurlopen(url)\n", "_urlopen for something else"),
    ],
)
def test_a_name_that_means_something_else(tmp_path, text, reason):
    with pytest.raises(SourceError, match=reason):
        changed(tmp_path, text)

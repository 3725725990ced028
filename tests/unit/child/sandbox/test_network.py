import asyncio
import subprocess
import sys
import types

import pytest

from unstall.child.sandbox.network import Refusal, _guard_aiohttp, _guard_httpx, _is_elsewhere, _without_secrets
from unstall.child.sandbox.refusals import note, read_refusals


@pytest.mark.parametrize("host", ["", "localhost", "127.0.0.1", "127.3.4.5", "::1"])
def test_the_machine_itself(host):
    assert not _is_elsewhere(host)


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "fe80::1%eth0", "example.org"])
def test_other_machines(host):
    assert _is_elsewhere(host)


def test_no_secret_of_a_url_is_noted():
    assert _without_secrets("https://me:secret@example.org/a/b?token=1") == "https://example.org/a/b"
    assert _without_secrets("http://example.org:80?token=1") == "http://example.org:80"
    assert _without_secrets("/path?token=1") == "/path"


def test_what_is_noted_often_is_told_once(tmp_path):
    (tmp_path / "notes").mkdir()
    for text in ("POST http://a/", "PUT\nhttp://b/", "POST http://a/"):
        note(str(tmp_path), text)
    assert read_refusals(tmp_path) == ["POST http://a/ (2 times)", "PUT http://b/"]


def test_a_note_that_cannot_be_written_is_no_error(tmp_path):
    note(str(tmp_path / "gone"), "POST")
    assert read_refusals(tmp_path / "gone") == []


class Refused(Exception):
    def __init__(self, message, request=None):
        super().__init__(message)


@pytest.fixture
def refusal(tmp_path):
    (tmp_path / "notes").mkdir()
    return Refusal(str(tmp_path), relayed=False)


def test_httpx_reads_and_does_not_write(refusal, tmp_path):
    class Transport:
        def handle_request(self, request):
            return "answered"

    class AsyncTransport:
        async def handle_async_request(self, request):
            return "answered"

    httpx = types.SimpleNamespace(HTTPTransport=Transport, AsyncHTTPTransport=AsyncTransport, ConnectError=Refused)
    _guard_httpx(refusal, httpx)
    get, post = (types.SimpleNamespace(method=method, url="https://a.example/b") for method in ("GET", "POST"))
    assert Transport().handle_request(get) == "answered"
    assert asyncio.run(AsyncTransport().handle_async_request(get)) == "answered"
    with pytest.raises(Refused, match=r"POST https://a\.example/b"):
        Transport().handle_request(post)
    with pytest.raises(Refused):
        asyncio.run(AsyncTransport().handle_async_request(post))
    assert read_refusals(tmp_path) == ["POST https://a.example/b (2 times)"]


def test_aiohttp_reads_and_does_not_write(refusal):
    class Session:
        async def _request(self, method, str_or_url, **kwargs):
            return "answered"

    _guard_aiohttp(refusal, types.SimpleNamespace(ClientSession=Session, ClientConnectionError=Refused))
    assert asyncio.run(Session()._request("GET", "http://a/")) == "answered"
    with pytest.raises(Refused):
        asyncio.run(Session()._request("put", "http://a/"))


def test_requests_sees_a_failing_connection(refusal, tmp_path):
    source = (
        "import sys; from unstall.child.sandbox import network; network.install(sys.argv[1], relayed=False); import requests\n"
        "try:\n    requests.post('http://127.0.0.1:9/x', json={})\n"
        "except requests.ConnectionError as error:\n    print('refused' if 'unstall' in str(error) else error)"
    )
    done = subprocess.run([sys.executable, "-c", source, tmp_path], capture_output=True, text=True)
    assert done.stdout == "refused\n", done.stderr
    assert read_refusals(tmp_path) == ["POST http://127.0.0.1:9/x"]

import pytest

from unstall.simplify.sandbox.inside.network import _is_elsewhere, _plain
from unstall.simplify.sandbox.inside.refusals import note, read_refusals


@pytest.mark.parametrize("host", ["", "localhost", "127.0.0.1", "127.3.4.5", "::1"])
def test_the_machine_itself(host):
    assert not _is_elsewhere(host)


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "fe80::1%eth0", "example.org"])
def test_other_machines(host):
    assert _is_elsewhere(host)


def test_no_secret_of_a_url_is_noted():
    assert _plain("https://me:secret@example.org/a/b?token=1") == "https://example.org/a/b"
    assert _plain("http://example.org:80?token=1") == "http://example.org:80"
    assert _plain("/path?token=1") == "/path"


def test_what_is_noted_often_is_told_once(tmp_path):
    (tmp_path / "notes").mkdir()
    for text in ("POST http://a/", "PUT\nhttp://b/", "POST http://a/"):
        note(str(tmp_path), text)
    assert read_refusals(tmp_path) == ["POST http://a/ (2 times)", "PUT http://b/"]


def test_a_note_that_cannot_be_written_is_no_error(tmp_path):
    note(str(tmp_path / "gone"), "POST")
    assert read_refusals(tmp_path / "gone") == []

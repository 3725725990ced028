"""What is particular to the pure-Python recorder; what it shares with the C one is in test_recorder."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys

import pytest
from recorders import Recorder, silence

from unstall.child import fallback


@pytest.fixture
def open_fallback(tmp_path):
    silence(fallback)
    yield Recorder(fallback, tmp_path).open()
    silence(fallback)


def half(x):
    return x / 2


def test_a_wrapped_function_is_a_plain_function():
    wrapped = fallback.wrap(half, "fallback.plain")
    assert type(wrapped) is type(half)
    assert wrapped.__wrapped__ is half


def test_a_wrapped_callable_without_a_name_still_works(open_fallback):
    class Callable:
        __slots__ = ()

        def __call__(self, x):
            return x + 1

    assert fallback.wrap(Callable(), "fallback.callable")(1) == 2
    assert open_fallback.names() == ["fallback.callable"]


def test_a_decorated_function_pickles_like_any_other(monkeypatch):
    decorated = fallback.span("fallback.pickle")(half)
    monkeypatch.setattr(sys.modules[__name__], "half", decorated)
    assert pickle.loads(pickle.dumps(decorated)) is decorated


def test_it_claims_no_cpu_time(open_fallback):
    for _ in range(5):
        fallback.wrap(sum, "fallback.cpu")(range(100_000))
    spans = open_fallback.spans()
    assert not (spans["flags"] & 6).any()
    assert not spans["cpu"].any()


def test_names_run_out_harmlessly(monkeypatch):
    monkeypatch.setattr(fallback, "_names", {str(n): n for n in range(1, 65536)})
    assert fallback.intern("one too many") == 0
    assert fallback.intern("65535") == 65535


@pytest.mark.parametrize("call", ["open", "pwrite"])
def test_a_disk_that_failed_once_is_not_asked_again(open_fallback, monkeypatch, call):
    asked = []

    def refuse(*args, **kwargs):
        asked.append(args)
        raise OSError(errno.ENOSPC, "No space left on device")

    for _ in range(4096):
        fallback.wrap(half, "fallback.full")(1)
    monkeypatch.setattr(fallback.os, call, refuse)
    for _ in range(10):
        fallback.wrap(half, "fallback.full")(1)
    monkeypatch.undo()
    fallback.wrap(half, "fallback.full")(1)
    assert len(asked) == 1
    assert len(open_fallback.spans()) == 4096
    assert open_fallback.header()["dropped"] == 11


def test_recording_takes_it_where_there_is_no_c_recorder():
    program = """
import sys
sys.modules["unstall.child._recorder"] = None
from unstall.child import recording
print(recording.NATIVE, recording.native.__name__)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False", "unstall.child.fallback"]


def test_writing_leaves_no_descriptor_open(open_fallback):
    before = _descriptors_of(open_fallback.path)
    for _ in range(2 * 4096 + 10):
        fallback.wrap(half, "fallback.descriptors")(1)
    assert open_fallback.header()["flushed"] == 2 * 4096
    assert _descriptors_of(open_fallback.path) == before


def _descriptors_of(path):
    """How many descriptors of this process are open on a file."""
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    return sum(os.path.lexists(link) and os.readlink(link) == str(path) for link in links)

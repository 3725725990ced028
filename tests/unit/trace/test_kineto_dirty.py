"""Files of torch.profiler and its like that are dirty, cut off, or hopeless."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kineto_files import START_US, document, host, names, small, thread_name, work

from unstall.trace.readers import read
from unstall.trace.timeline import TraceError


def test_missing_times_are_counted(timeline_of):
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "a", **times}
        for times in ({}, {"ts": None}, {"ts": float("nan")}, {"ts": float("inf")}, {"ts": "x"}, {"ts": 5})
    ]
    t = timeline_of(events)
    assert t.problems == {"events without a time": 5, "events without a duration (read as 0)": 1}
    assert t.host.dur_ns.tolist() == [0]


def test_negative_durations_are_none(timeline_of):
    t = timeline_of([host("a", 0, -5), host("b", 1, 2), work("k", 3, -1)])
    assert t.problems == {"negative durations (read as 0)": 2}
    assert t.host.dur_ns.tolist() == [0, 2000]


def test_integers_beyond_64_bits(timeline_of):
    big = 10**25
    t = timeline_of(
        [
            work("k", 1, 1, correlation=big),
            host("a", 0, 1, Comms_Id=10159970886766084423),
            {"ph": "X", "ts": big * 10**9, "dur": 1},
        ]
    )
    assert t.problems["integers beyond 64 bits"] == 2
    assert t.device.correlation.tolist() == [-1]
    assert len(t.host) == 1


def test_control_characters_and_broken_utf8_in_names(timeline_of):
    text = b'[{"ph":"X","cat":"cpu_op","ts":1,"dur":1,"name":"a\n\x01\t\\u0000b"},{"ph":"X","cat":"cpu_op","ts":2,"dur":1,"name":"\xff\xfe"},{"ph":"X","cat":"cpu_op","ts":3,"dur":1,"name":"\\ud800"}]'
    t = timeline_of(text)
    assert names(t, t.host) == ["a\n\x01\t\0b", "\ufffd\ufffd", "\ufffd"]


def test_a_stray_time_does_not_become_the_origin(timeline_of):
    events = small(2)
    events.append({"ph": "X", "cat": "kernel", "name": "stray", "pid": 0, "tid": 7, "ts": 0, "dur": 1})
    t = timeline_of(events)
    assert t.origin_ns == START_US * 1000
    assert t.problems == {"events more than a week from the others (left out)": 1}
    assert "stray" not in names(t, t.device)


def test_a_killed_job_leaves_what_it_wrote(timeline_of):
    text = json.dumps(document(small(4))).encode()
    t = timeline_of(text[: len(text) // 2])
    assert 5 < len(t.host) < 28
    assert [what for what in t.problems if "cut off in the middle" in what]


def test_a_packed_file_that_is_cut_off(timeline_of):
    text = b"[" + b",".join(json.dumps(host(f"op {n}", n, 1)).encode() for n in range(20_000))
    packed = gzip.compress(text, 1)
    t = timeline_of(packed[: len(packed) // 2], "cut.json")
    assert 100 < len(t.host) < 20_000
    assert any("packed file cut off" in what for what in t.problems)


def test_an_entry_beside_the_events_that_is_broken(timeline_of):
    events = json.dumps(small(1)).encode()
    assert timeline_of(b'{"bad": [1, 2,, "traceEvents": ' + events + b"}").problems == {
        "entries next to the events that are not valid JSON": 1
    }
    t = timeline_of(b'{"traceEvents": ' + events + b', "INFO": ["cut')
    assert len(t.host) == 7
    assert len(t.problems) == 1


@pytest.mark.parametrize(
    "content, says",
    [
        (b"", "the file is empty"),
        (b"  \n", "the file is empty"),
        (b"hello", "no trace that is known"),
        (b"\x0a\x08binary", "no trace that is known"),
        (b"{}", "no trace events in it"),
        (b"[]", "no trace events in it"),
        (b'{"traceEvents": []}', "no trace events in it"),
        (b'{"traceEvents": {}}', "no trace events in it"),
        (b'{"traceEv', "no trace events in it"),
        (b"[1, 2, null]", "3 entries without an event"),
        (b'[{"ph": "X"}]', "1 event without a time"),
        (b"PK\x03\x04aaaa", "zip archive"),
        (b"\x28\xb5\x2f\xfdaaaa", "zstd"),
        (b"\x1f\x8bnot gzip at all", ""),
        (gzip.compress(b"", mtime=0), "the file is empty"),
    ],
)
def test_a_hopeless_file_gets_one_clear_line(tmp_path, scanner, content, says):
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(TraceError) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert says in message
    assert "\n" not in message


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(TraceError, match="No such file"):
        read(tmp_path / "nowhere.json")
    with pytest.raises(TraceError, match="directory"):
        read(tmp_path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(data=st.data())
def test_damage_never_crashes(tmp_path, data):
    """Whatever is done to a file, there is a timeline or one clear line."""
    text = bytearray(json.dumps(document([thread_name(1, "x"), *small(2)], distributedInfo={"rank": 1})).encode())
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, max(len(text) - 1, 0)))
        text[at : at + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=6))
    text = text[: data.draw(st.integers(0, len(text)))]
    content = gzip.compress(bytes(text)) if data.draw(st.booleans()) else bytes(text)
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    path = tmp_path / "damaged.json"
    path.write_bytes(content)
    try:
        (t,) = read(path)
    except TraceError:
        return
    assert (np.diff(t.host.start_ns) >= 0).all()
    assert (t.host.dur_ns >= 0).all()
    assert len(t.parent) == len(t.host)
    assert len(t.launch) == len(t.device)
    assert len(t.steps) >= 0

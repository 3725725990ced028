"""The two scanners, in C and in Python, against each other and against json.loads."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kineto_files import document, small

from unstall.trace.library import library
from unstall.trace.readers.assemble import collective, lane
from unstall.trace.readers.document import read_document
from unstall.trace.readers.events import PythonEventScanner
from unstall.trace.readers.native import NativeScanner
from unstall.trace.readers.rows import CATEGORIES, COLUMNS, Texts, decoded, unescaped
from unstall.trace.timeline import OperatorInputs, TraceError

if not library():
    pytest.skip("the library in C was not built", allow_module_level=True)

NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.integers(-5, 50),
    st.floats(),
    st.decimals(
        allow_nan=False, allow_infinity=False, min_value=-1_000_000, max_value=2_000_000_000_000_000, places=3
    ).map(float),
)
TEXTS = st.one_of(
    st.text(max_size=12), st.sampled_from(["12", "1.5", "-3", "01", "1e2", "stream 7", "", "tr\\ue", "\ud800x"])
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
CATEGORY_NAMES = st.sampled_from([*CATEGORIES] + ["Kernel", "Operator", "KERNEL", "mystery", "ac2g", ""])
ARGS = st.fixed_dictionaries(
    {},
    optional={
        "correlation": NUMBERS | TEXTS,
        "External id": NUMBERS,
        "Sequence number": NUMBERS,
        "device": NUMBERS | TEXTS,
        "stream": NUMBERS | TEXTS,
        "bytes": NUMBERS | TEXTS,
        "graph node id": NUMBERS,
        "wait_on_stream": NUMBERS,
        "wait_on_cuda_event_record_corr_id": NUMBERS,
        "Input Dims": st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=3) | ANYTHING,
        "Input type": st.lists(st.sampled_from(["float", "Scalar", ""]), max_size=3),
        "Concrete Inputs": st.lists(TEXTS, max_size=3),
        "Call stack": ANYTHING,
        "Collective name": TEXTS,
        "dtype": TEXTS,
        "In msg nelems": st.integers(0, 2**40),
        "Group size": st.integers(0, 64) | TEXTS,
        "name": ANYTHING,
        "labels": TEXTS,
        "anything": ANYTHING,
    },
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(["X", "X", "X", "X", "B", "E", "M", "i", "s", "f", "?", "XX"]) | ANYTHING,
        "cat": CATEGORY_NAMES | ANYTHING,
        "name": st.sampled_from(["aten::mm", "aten::conv2d", "ncclKernel", "thread_name", "process_name"]) | ANYTHING,
        "ts": NUMBERS | ANYTHING,
        "dur": NUMBERS | ANYTHING,
        "pid": NUMBERS | ANYTHING,
        "tid": NUMBERS | ANYTHING,
        "args": ARGS | ANYTHING,
        "anything": ANYTHING,
    },
)
LAYOUTS = st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}])


def pieces(data: bytes, sizes: list[int]) -> list[bytes]:
    """The data in chunks of these sizes, over and over."""
    result, at, n = [], 0, 0
    while at < len(data):
        result.append(data[at : at + sizes[n % len(sizes)]])
        at += sizes[n % len(sizes)]
        n += 1
    return result


def in_c():
    return NativeScanner(library())


def meaning(which: Texts, text: bytes) -> Any:
    """What is read from an interned string: the same facts may be written differently."""
    if which == Texts.LANES:
        return lane(text)
    if which == Texts.COLLECTIVES:
        return collective(text)
    if which == Texts.INPUTS:
        return str(OperatorInputs.parse(text.decode("utf-8", "replace")))
    if which == Texts.ROUTES:
        return str(decoded(text))
    return unescaped(text)


def scanned(scanner: Any, chunks: list[bytes]) -> dict[str, Any]:
    """All that a scanner has to say of an array of events, in a form that can be compared."""
    rest = scanner.feed(b"")
    for chunk in chunks:
        if rest is None:
            rest = scanner.feed(chunk)
        else:
            rest += chunk
    if rest is None:
        rest = scanner.feed(b"", final=True)
    counts = scanner.counts()
    texts = {which: [meaning(which, text) for text in scanner.strings(which)] for which in Texts}
    routes: dict[str, int] = {}
    for route, count in zip(texts[Texts.ROUTES], counts.events):
        routes[route] = routes.get(route, 0) + count
    rows: dict[str, dict[str, list[Any]]] = {}
    for number, column in enumerate(COLUMNS):
        values = np.frombuffer(scanner.take(number), column.dtype).tolist()
        if column.texts != Texts.ROUTES:
            values = [texts[column.texts][value] if value >= 0 else None for value in values]
        rows.setdefault(column.table.name, {})[column.name] = values
    return {
        "rest": rest if rest is None else rest.decode("utf-8", "replace"),
        "counts": counts._replace(events=[]),
        "routes": routes,
        "rows": rows,
    }


def both(data: bytes, sizes: list[int]) -> dict[str, Any]:
    """What both scanners say, which must be the same, whatever the size of the chunks.

    Where the text ends in the middle, only the one in C knows a broken last event from one that is cut off.
    """
    said = scanned(in_c(), pieces(data, sizes))
    assert scanned(in_c(), [data]) == said
    slow = scanned(PythonEventScanner(), pieces(data, sizes))
    if said["counts"].truncated:
        slow["counts"] = slow["counts"]._replace(malformed=said["counts"].malformed)
    assert slow == said
    return said


@given(st.lists(EVENTS | ANYTHING, max_size=6), LAYOUTS, st.lists(st.integers(1, 200), min_size=1, max_size=3))
def test_equal_on_any_events(events, layout, sizes):
    text = json.dumps(events, **layout).encode("utf-8", "surrogatepass")
    said = both(text[1:], sizes)
    assert said["rest"] == ""
    expected = json.loads(text.decode("utf-8", "replace"))
    assert sum(said["routes"].values()) == sum(isinstance(event, dict) for event in expected)
    assert said["counts"].no_object == sum(not isinstance(event, dict) for event in expected)
    assert said["counts"].malformed == 0


@given(st.lists(EVENTS, min_size=1, max_size=3), st.data(), st.lists(st.integers(1, 64), min_size=1, max_size=3))
def test_equal_on_damaged_bytes(events, data, sizes):
    text = bytearray(json.dumps(events).encode("utf-8", "surrogatepass")[1:])
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.binary(max_size=3) | st.sampled_from([b'"', b"\\", b"}", b"{", b"]", b",", b"0"])
        )
        if not text:
            return
    both(bytes(text), sizes)


@given(st.lists(EVENTS, min_size=1, max_size=3), st.data())
def test_equal_on_truncated_bytes(events, data):
    text = json.dumps(events).encode("utf-8", "surrogatepass")[1:]
    cut = data.draw(st.integers(0, len(text) - 1))
    said = both(text[:cut], [7])
    assert said["counts"].truncated


@example(b"]\xc2", [2])
@given(st.binary(max_size=80), st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_equal_on_any_bytes(data, sizes):
    both(data, sizes)


@given(st.text(alphabet='{}[],:"\\ue0123.-+ntfalsNIx ', max_size=40))
def test_equal_on_text_of_json_characters(text):
    both(text.encode(), [3])


@given(st.text(alphabet="0123456789.eE+-", min_size=1, max_size=45))
@example("1E1000000")
@example("-1E1000000000000000000")
@example("1E-1000000")
@example("9E999999999999999999999")
def test_numbers_are_exact(text):
    both(b'{"ph":"X","ts":%s,"dur":"%s","pid":%s,"tid":"%s"}]' % ((text.encode(),) * 4), [1000])


@given(st.integers(0, 2 * 10**18))
def test_times_keep_their_nanoseconds(ns):
    said = both(b'{"ph": "X", "ts": %d.%03d, "dur": %d}]' % (ns // 1000, ns % 1000, ns // 1000), [1000])
    assert said["rows"]["HOST"]["start_ns"] == [ns]
    assert said["rows"]["HOST"]["dur_ns"] == [ns // 1000 * 1000]


def test_a_broken_event_costs_only_itself():
    said = both(b'{"ph":"X","ts":1,"dur":1}, {"ph":"X","ts":2,"name":"a"b"}, {"ph":"X","ts":3,"dur":1}]', [5])
    assert said["rows"]["HOST"]["start_ns"] == [1000, 3000]
    assert said["counts"].malformed == 1


def test_deep_nesting_is_refused_not_followed():
    said = both(b'{"args": ' + b"[" * 100_000 + b"]" * 100_000 + b'}, {"ph":"X","ts":1,"dur":1}]', [10_000])
    assert said["rows"]["HOST"]["start_ns"] == [1000]


def test_an_event_of_many_pieces_is_not_parsed_for_each():
    long = b'{"ph": "X", "ts": 1, "dur": 1, "name": "' + b"x" * 2_000_000 + b'"}]'
    said = scanned(in_c(), pieces(long, [100]))
    assert said["routes"] == {"['X', None]": 1}


@pytest.mark.parametrize("new", [in_c, PythonEventScanner])
def test_nothing_is_read_behind_the_end(new):
    scanner = new()
    assert scanner.feed(b"]rest", final=True) == b"rest"
    with pytest.raises(ValueError, match="ended"):
        scanner.feed(b"more")


def test_a_scanner_serves_one_thread_at_a_time(monkeypatch):
    scanner = in_c()
    raised = []

    def feed_again():
        with pytest.raises(ValueError, match="another thread") as caught:
            scanner.feed(b"]")
        raised.append(caught)
        return 0

    monkeypatch.setattr(scanner, "_scan", feed_again)
    scanner.feed(b"1")
    assert raised


@given(st.dictionaries(st.text(max_size=9), ANYTHING, max_size=4), st.booleans(), LAYOUTS, st.integers(1, 300))
def test_entries_beside_the_events_are_read_wherever_they_are(entries, before, layout, size):
    entries.pop("traceEvents", None)
    events = {"traceEvents": small(1)}
    text = json.dumps({**entries, **events} if before else {**events, **entries}, **layout).encode(
        "utf-8", "surrogatepass"
    )
    metadata, problems = read_document(iter(pieces(text, [size])), in_c())
    expected = json.loads(text.decode("utf-8", "replace"), parse_int=lambda t: int(t) if len(t) < 40 else float(t))
    del expected["traceEvents"]
    assert json.dumps(metadata) == json.dumps(expected)
    assert not problems


@given(
    st.binary(max_size=60) | st.text(alphabet='{}[],:"\\traceEvnts 01', max_size=60).map(str.encode), st.integers(1, 20)
)
def test_a_document_of_anything_is_read_or_refused(data, size):
    for scanner in (in_c(), PythonEventScanner()):
        try:
            read_document(iter(pieces(data, [size])), scanner)
        except TraceError:
            pass


@given(st.data())
def test_a_damaged_document_is_read_or_refused(data):
    text = bytearray(json.dumps(document(small(1), distributedInfo={"rank": 0})).encode())
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=4))
    fast, slow = in_c(), PythonEventScanner()
    for scanner in (fast, slow):
        try:
            read_document(iter(pieces(bytes(text), [33])), scanner)
        except TraceError:
            pass
    if not fast.counts().truncated:
        assert fast.counts() == slow.counts()
    assert fast.take(0) == slow.take(0)

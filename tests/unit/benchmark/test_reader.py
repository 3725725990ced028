"""Recordings read back: spans, names, facts, and the phase that each span's own time counts towards."""

from __future__ import annotations

import json
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorders import load, silence
from spanfactory import Recording

from unstall.benchmark.reader import HEADER, NO_PHASE, RECORD, read_all, read_process, read_spans
from unstall.records.vocabulary import PHASE_NAMES


@pytest.fixture
def fallback():
    api = load("fallback")
    silence(api)
    yield api
    silence(api)


def phases(recording):
    """Phase by span name; None for no phase."""
    process = recording.process()
    indices = process.phase_indices(process.spans)
    return {
        process.names[int(span["name"])]: None if index == NO_PHASE else PHASE_NAMES[index]
        for span, index in zip(process.spans, indices)
    }


# ---------------------------------------------------------------- files


def test_the_formats_sizes_are_fixed():
    assert RECORD.itemsize == 48
    assert HEADER.itemsize == 396


def test_a_file_that_is_cut_short_is_a_value_error(tmp_path):
    path = tmp_path / "rec-1.bin"
    path.write_bytes(b"UNSTALL1")
    with pytest.raises(ValueError, match="not a recording"):
        read_spans(path)


@pytest.mark.parametrize("content", [bytes(8192), b"X" * 8192, b"UNSTALL1" + struct.pack("<II", 1, 40) + bytes(8192)])
def test_a_file_of_something_else_is_a_value_error(tmp_path, content):
    path = tmp_path / "rec-1.bin"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a recording"):
        read_spans(path)


@pytest.mark.parametrize("field", ["count", "flushed", "tail_records"])
def test_a_header_that_speaks_of_billions_allocates_what_the_file_has(fallback, tmp_path, field):
    fallback.open(str(tmp_path / "rec-7.bin"))
    with fallback.span("reader.span"):
        pass
    content = bytearray((tmp_path / "rec-7.bin").read_bytes())
    header = np.frombuffer(content, HEADER, 1)
    header[field] = 2**31
    if field == "flushed":
        header["count"] = 2**32
    (tmp_path / "rec-8.bin").write_bytes(content)
    spans, _ = read_spans(tmp_path / "rec-8.bin")
    assert spans.nbytes <= len(content)


def test_spans_are_sorted_an_enclosing_one_first(fallback, tmp_path):
    fallback.open(str(tmp_path / "rec-7.bin"))
    with fallback.span("reader.outer"), fallback.span("reader.inner"):
        pass
    with fallback.span("reader.next"):
        pass
    names = {number: name for name, number in fallback.names().items()}
    lines = [json.dumps({"kind": "name", "id": number, "name": name}) for number, name in names.items()]
    (tmp_path / "info-7.jsonl").write_text("\n".join(lines))
    process = read_process(tmp_path, 7)
    assert [process.names[int(n)] for n in process.spans["name"]] == ["reader.outer", "reader.inner", "reader.next"]
    assert len(process.named("reader.inner")) == 1
    assert len(process.named("no such name")) == 0


def test_facts_are_grouped_by_kind_and_a_torn_line_is_skipped(tmp_path):
    (tmp_path / "info-7.jsonl").write_bytes(
        b'{"kind": "process", "pid": 7, "parent": 3, "rank": "2"}\n'
        b'{"kind": "name", "id": 1, "name": "~forward"}\n'
        b'{"kind": "batch", "size": 4}\n'
        b'{"kind": "batch", "size": 8}\n'
        b'{"kind": "batch", "si'
    )
    process = read_process(tmp_path, 7)
    assert (process.pid, process.parent, process.rank) == (7, 3, 2)
    assert process.names == {1: "~forward"}
    assert process.ids == {"~forward": 1}
    assert [fact["size"] for fact in process.facts["batch"]] == [4, 8]
    assert process.first("batch")["size"] == 4
    assert process.first("loader") is None
    assert len(process.spans) == 0


def test_a_recording_that_was_damaged_leaves_the_facts(tmp_path):
    (tmp_path / "info-7.jsonl").write_text('{"kind": "process", "parent": 3}\n')
    (tmp_path / "rec-7.bin").write_bytes(b"damaged")
    process = read_process(tmp_path, 7)
    assert (process.parent, len(process.spans)) == (3, 0)


def test_every_process_that_left_something_is_read(fallback, tmp_path):
    fallback.open(str(tmp_path / "rec-12.bin"))
    (tmp_path / "info-5.jsonl").write_text("")
    assert [process.pid for process in read_all(tmp_path)] == [5, 12]
    assert read_all(tmp_path / "nothing here") == []


# ---------------------------------------------------------------- phases


def test_seams_have_their_own_phase_and_the_users_spans_none():
    r = Recording()
    for name in ("~data.next", "~forward", "~backward", "~optimizer", "~env.step", "~comm.all_reduce", "mine", "~gc"):
        r.do(name, 0.1)
    assert phases(r) == {
        "~data.next": "data_wait",
        "~forward": "forward",
        "~backward": "backward",
        "~optimizer": "optimizer",
        "~env.step": "env",
        "~comm.all_reduce": "comm",
        "mine": None,
        "~gc": None,
    }


@pytest.mark.parametrize("holder, phase", [("~data.next", "data_wait"), ("~forward", "forward"), ("mine", None)])
@pytest.mark.parametrize("guest", ["a user's span", "~gc", "~net.recv"])
def test_a_span_of_no_phase_belongs_to_where_it_happens(holder, phase, guest):
    r = Recording()
    with r.span(holder), r.span("between"):
        r.do(guest, 0.1)
    assert phases(r)[guest] == phase


@pytest.mark.parametrize(
    "holder, phase",
    [
        ("~data.next", "data_wait"),
        ("~env.step", "env"),
        ("~callback.torch.save", "callback"),
        ("~backward", "backward"),
    ],
)
def test_a_module_called_by_what_serves_the_loop_belongs_to_that(holder, phase):
    r = Recording()
    with r.span(holder), r.span("a transform"):
        r.do("~forward", 0.1)
    assert phases(r)["~forward"] == phase


def test_a_collective_in_backward_is_still_communication():
    r = Recording()
    with r.span("~backward"):
        r.do("~comm.all_reduce", 0.1)
    assert phases(r)["~comm.all_reduce"] == "comm"


def test_a_span_after_another_does_not_belong_to_it():
    r = Recording()
    with r.span("mine"):
        with r.span("~data.next"):
            r.spend(0.1)
        r.spend(0.1)
        r.do("~gc", 0.1)
    assert phases(r)["~gc"] is None


TREES = st.recursive(
    st.lists(st.sampled_from(["~forward", "~backward", "~data.next", "mine", "~gc"]), max_size=3),
    lambda children: st.lists(st.tuples(st.sampled_from(["~forward", "~data.next", "mine"]), children), max_size=3),
    max_leaves=12,
)


def build(r, tree):
    for node in tree:
        name, children = (node, []) if isinstance(node, str) else node
        with r.span(name):
            r.spend(0.01)
            build(r, children)
            r.spend(0.01)


@given(TREES)
def test_phases_are_inherited_as_a_walk_down_the_tree_would(tree):
    """Against the obvious recursive reading of the rules."""
    r = Recording()
    with r.span("root"):
        build(r, tree)
    process = r.process()
    own = {"~forward": "forward", "~backward": "backward", "~data.next": "data_wait"}
    expected = []

    def walk(nodes, above):
        for node in nodes:
            name, children = (node, []) if isinstance(node, str) else node
            phase = own.get(name, above)
            if phase == "forward" and above in ("data_wait", "backward"):
                phase = above
            expected.append(phase)
            walk(children, phase)

    walk(tree, None)
    found = [None if index == NO_PHASE else PHASE_NAMES[index] for index in process.phase_indices(process.spans)]
    assert found == [None, *expected]


def test_no_spans_have_no_phases():
    process = read_process_without_spans()
    assert len(process.phase_indices(process.spans)) == 0


def read_process_without_spans():
    r = Recording()
    r.do("~forward", 0.1)
    process = r.process()
    process = replace(process, spans=np.empty(0, RECORD))
    return process

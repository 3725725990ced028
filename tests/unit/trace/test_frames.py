"""Traces as data frames, and exported."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest
from kineto_files import document, host, small, work, write

import unstall.trace
from unstall.exports import export, exporters
from unstall.trace.readers import read


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "t.json", document(small(3), distributedInfo={"rank": 1, "world_size": 4}))


def test_frames(path):
    pytest.importorskip("polars")
    trace = unstall.trace.load(path)
    assert len(trace.host) == 21
    assert set(trace.device["name"].to_list()) == {"gemm", "add", "Memcpy DtoH (Device -> Pageable)"}
    assert trace.device["kind"].to_list()[:3] == ["kernel", "kernel", "memcpy"]
    assert trace.device["copy"].to_list()[2] == "d2h"
    assert trace.steps["number"].to_list() == [0, 1, 2]
    assert len(trace.waits) == 0
    row = trace.device["launch"].to_list()[0]
    assert trace.host["name"].to_list()[row] == "cudaLaunchKernel"
    assert "21 host events" in repr(trace)


def test_frames_of_pandas_where_there_is_no_polars(path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.setitem(sys.modules, "polars", None)
    trace = unstall.trace.load(path)
    assert trace.device["name"].tolist()[0] == "gemm"
    assert len(trace.waits) == 0


def test_without_either_it_says_what_to_install(path, monkeypatch):
    for library in ("polars", "pandas"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match="pip install polars"):
        _ = unstall.trace.load(path).host


def test_a_process_that_is_not_there(path):
    with pytest.raises(unstall.trace.TraceError, match="no process 3, it holds 1"):
        unstall.trace.load(path, process=3)


def test_importing_the_package_loads_no_frames():
    code = "import sys, unstall.trace; sys.exit(any(m in sys.modules for m in ('polars', 'pandas', 'torch')))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_chrome_export_reads_back_as_it_was(path, tmp_path):
    (before,) = read(path)
    for name in ("out.json", "out.json.gz"):
        export(exporters()["chrome"], before, str(tmp_path / name))
        (after,) = read(tmp_path / name)
        for table in ("host", "device"):
            for column in ("start_ns", "dur_ns", "kind", "correlation", "external"):
                assert (getattr(getattr(after, table), column) == getattr(getattr(before, table), column)).all()
        assert [after.names[n] for n in after.host.name] == [before.names[n] for n in before.host.name]
        assert (after.launch == before.launch).all()
        assert (after.threads, after.rank, after.world_size, after.origin_ns) == (
            before.threads,
            1,
            4,
            before.origin_ns,
        )
    flows = [e for e in json.loads((tmp_path / "out.json").read_bytes())["traceEvents"] if e["ph"] in "sf"]
    assert len(flows) == 18


def test_csv_export_has_a_row_an_event(path, tmp_path):
    (timeline,) = read(path)
    export(exporters()["csv"], timeline, str(tmp_path / "out.csv"))
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30
    assert rows[0] | {"bytes": ""} == {
        **dict.fromkeys(("device", "stream", "correlation"), "-1"),
        "where": "host",
        "start_ns": "0",
        "dur_ns": "990000",
        "kind": "step",
        "name": "ProfilerStep#0",
        "pid": "100",
        "tid": "100",
        "bytes": "",
    }
    assert {row["kind"] for row in rows if row["where"] == "device"} == {"kernel", "memcpy"}


def test_parquet_export_has_the_same_rows(path, tmp_path):
    polars = pytest.importorskip("polars")
    (timeline,) = read(path)
    export(exporters()["csv"], timeline, str(tmp_path / "out.csv"))
    export(exporters()["parquet"], timeline, str(tmp_path / "out.parquet"))
    frame = polars.read_parquet(tmp_path / "out.parquet")
    expected = polars.read_csv(tmp_path / "out.csv")
    assert frame.columns == expected.columns
    for name in frame.columns:
        assert frame[name].cast(polars.String).to_list() == expected[name].cast(polars.String).to_list()


def fields(data):
    """(number, value) of a protobuf message: integers, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = varint() if key & 7 == 2 else 8
            yield key >> 3, data[at : at + size]
            at += size


def test_perfetto_export(tmp_path):
    """Every event begins and ends on its track; what does not nest is cut off."""
    events = [*small(2), host("overlaps", 950, 500), host("aten::mm", 0, 0), work("b", 5, 5, device=1, stream=3)]
    (timeline,) = read(write(tmp_path / "t.json", events))
    export(exporters()["perfetto"], timeline, str(tmp_path / "out.pftrace"))
    packets = [dict(fields(packet)) for number, packet in fields((tmp_path / "out.pftrace").read_bytes())]
    tracks = [dict(fields(packet[60])) for packet in packets if 60 in packet]
    interned = next(packet[12] for packet in packets if 12 in packet)
    names = {dict(fields(n))[1]: dict(fields(n))[2].decode() for _, n in fields(interned)}
    assert {track[2].decode() for track in tracks if 2 in track} == {"GPU 0", "GPU 1", "stream 7", "stream 3"}
    known = {track[1] for track in tracks}
    assert len(known) == len(tracks)
    assert 12 in packets[0] and packets[0][13] == 1, "what needs the names would be dropped before them"
    open_by_track: dict[int, list[int]] = {}
    begun = []
    for packet in packets:
        if 11 not in packet:
            continue
        event = dict(fields(packet[11]))
        assert event[11] in known
        stack = open_by_track.setdefault(event[11], [])
        if event[9] == 1:
            stack.append(packet[8])
            begun.append(names[event[10]])
        else:
            assert packet[8] >= stack.pop()
    assert not any(open_by_track.values())
    assert sorted(begun) == sorted([timeline.names[n] for n in [*timeline.host.name, *timeline.device.name]])

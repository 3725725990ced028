"""Nsight Systems: exports of several versions, damaged ones, and reports."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nsight_files import PID, PROCESS, Export, training

from unstall.diagnose.trace_report import report
from unstall.trace.ranks import Ranks
from unstall.trace.readers import read
from unstall.trace.timeline import CopyKind, DeviceKind, HostKind, HostMemory, TraceError, WaitKind


def test_a_training_loop(tmp_path):
    (t,) = read(training().write(tmp_path / "t.sqlite"))
    assert (t.source, len(t.host), len(t.device), t.problems) == ("nsight", 8, 2, {})
    assert [t.names[t.host.name[row]] for row in t.launch] == ["cudaLaunchKernel"] * 2
    assert t.steps.number.tolist() == [0, 1]
    assert t.steps.dur_ns.tolist() == [990_000] * 2
    assert (t.threads[0].pid, t.threads[0].tid, t.threads[0].name) == (PID, 5, "python3")
    around = {t.names[t.host.name[row]]: t.names[t.host.name[p]] for row, p in enumerate(t.parent) if p >= 0}
    assert around["cudaLaunchKernel"] == "aten::mm"
    assert around["aten::mm"] == "iteration 1"


def test_operators_are_told_from_other_ranges(tmp_path):
    (t,) = read(training(1).write(tmp_path / "t.sqlite"))
    row = [t.names[n] for n in t.host.name].index("aten::mm")
    assert t.host.kind[row] == HostKind.OPERATOR
    assert (t.host.sequence[row], t.host.external[row]) == (4, 70)
    assert t.inputs(int(t.host.inputs[row])).dims == ([2, 3], [3, 4])
    row = [t.names[n] for n in t.host.name].index("iteration 0")
    assert t.host.kind[row] == HostKind.ANNOTATION


def test_the_words_of_unstall_run_with_nvtx(tmp_path):
    export = training(1)
    export.range("unstall data.next", 991_000, 999_000)
    (t,) = read(export.write(tmp_path / "t.sqlite"))
    assert (t.host.kind == HostKind.LOADER).sum() == 1


def test_driver_calls_and_overhead(tmp_path):
    export = training(1)
    export.call("cuLaunchKernel", 500, 900, 99)
    export.add("PROFILER_OVERHEAD", start=1000, end=2000, globalTid=PROCESS + 5, nameId=export.string("Buffer flush"))
    (t,) = read(export.write(tmp_path / "t.sqlite"))
    kinds = {t.names[n]: HostKind(k) for n, k in zip(t.host.name.tolist(), t.host.kind.tolist())}
    assert kinds["cuLaunchKernel"] == HostKind.DRIVER
    assert kinds["cudaLaunchKernel"] == HostKind.RUNTIME
    assert kinds["Buffer flush"] == HostKind.OVERHEAD


def test_copies_memsets_and_collectives(tmp_path):
    export = training(1)
    export.copy(1, 0, 2, 500_000, 510_000, 50, 4096)
    export.copy(2, 2, 1, 520_000, 530_000, 51, 8)
    export.copy(77, 2, 1, 531_000, 532_000, 52, 8)
    export.add(
        "CUPTI_ACTIVITY_KIND_MEMSET",
        start=540_000,
        end=541_000,
        deviceId=0,
        streamId=7,
        correlationId=53,
        globalPid=PROCESS,
        bytes=16,
    )
    export.kernel("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage)", 600_000, 700_000, 54)
    (t,) = read(export.write(tmp_path / "t.sqlite"))
    assert [DeviceKind(k).name for k in t.device.kind] == [
        "KERNEL",
        "MEMCPY",
        "MEMCPY",
        "MEMCPY",
        "MEMSET",
        "COLLECTIVE",
    ]
    assert [CopyKind(c) for c in t.device.copy[1:4]] == [CopyKind.H2D, CopyKind.D2H, CopyKind.NONE]
    assert [HostMemory(m) for m in t.device.memory[1:3]] == [HostMemory.PAGEABLE, HostMemory.PINNED]
    assert t.device.bytes.tolist() == [-1, 4096, 8, 8, 16, -1]


def test_waits_know_the_event_they_wait_for(tmp_path):
    export = training(1)
    metrics = {"deviceId": 0, "globalPid": PROCESS}
    export.add("CUPTI_ACTIVITY_KIND_CUDA_EVENT", eventId=3, eventSyncId=8, streamId=20, correlationId=60)
    table = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
    export.add(table, start=5, end=6, streamId=7, correlationId=61, syncType=2, eventId=3, eventSyncId=8, **metrics)
    export.add(
        table, start=7, end=9, streamId=7, correlationId=62, syncType=3, eventId=4294967295, eventSyncId=0, **metrics
    )
    (t,) = read(export.write(tmp_path / "t.sqlite"))
    assert [WaitKind(k) for k in t.waits.kind] == [WaitKind.STREAM_WAIT, WaitKind.STREAM_SYNC]
    assert t.waits.on_stream.tolist() == [20, -1]
    assert t.waits.on_correlation.tolist() == [60, -1]


def test_graphs(tmp_path):
    export = training(1)
    export.call("cudaGraphLaunch_v10000", 430_000, 440_000, 70)
    export.kernel("node", 450_000, 460_000, 70, graphNodeId=5)
    export.add(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        start=470_000,
        end=480_000,
        deviceId=0,
        streamId=7,
        correlationId=71,
        globalPid=PROCESS,
    )
    (t,) = read(export.write(tmp_path / "t.sqlite"))
    assert t.device.graph.tolist() == [False, True, True]


def test_processes_of_one_report_are_ranks(tmp_path):
    export, other = training(2), training(3, PROCESS + (1 << 24), device=1)
    for table, rows in other.tables.items():
        if table != "StringIds":
            export.tables[table] += rows
    first, second = read(export.write(tmp_path / "t.sqlite"))
    assert (first.rank, first.world_size, second.rank) == (0, 2, 1)
    assert (len(first.device), len(second.device)) == (2, 3)
    assert set(second.device.device.tolist()) == {1}
    assert {thread.pid for thread in second.threads} == {PID + 1}


def test_devices_and_the_clock(tmp_path):
    export = training(1)
    export.add("TARGET_INFO_GPU", id=0, name="GPU Y", totalMemory=5, smCount=108, computeMajor=8, computeMinor=6)
    export.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=1_700_000_000_000_000_000, systemClockNs=1_000)
    (t,) = read(export.write(tmp_path / "t.sqlite"))
    assert (t.devices[0].name, t.devices[0].memory_bytes, t.devices[0].multiprocessors, t.devices[0].compute) == (
        "GPU Y",
        5,
        108,
        "8.6",
    )
    assert t.origin_ns == 1_699_999_999_999_999_000


def test_an_old_export_with_fewer_columns(tmp_path):
    export = Export()
    export.add(
        "CUPTI_ACTIVITY_KIND_KERNEL", start=10, end=20, streamId=7, correlationId=1, shortName=export.string("k")
    )
    export.add("CUPTI_ACTIVITY_KIND_RUNTIME", start=1, end=2, globalTid=PROCESS + 5, correlationId=1, nameId=99)
    export.add("CUPTI_ACTIVITY_KIND_RUNTIME", start=3, end=2, globalTid=None, correlationId="x", nameId=None)
    (t,) = read(export.write(tmp_path / "t.sqlite"))
    assert [t.names[n] for n in t.device.name] == ["k"]
    assert t.device.device.tolist() == [-1]


def test_an_old_export_does_not_say_whose_a_kernel_is(tmp_path):
    """It is of the process whose call has the same correlation id."""
    export, other = training(3), training(2, PROCESS + (1 << 24))
    for table, rows in other.tables.items():
        if table != "StringIds":
            export.tables[table] += [
                row | {"correlationId": row["correlationId"] + 100} if "correlationId" in row else row for row in rows
            ]
    for row in export.tables["CUPTI_ACTIVITY_KIND_KERNEL"]:
        del row["globalPid"]
    export.kernel("stray", 5, 6, 9999, process=None)
    first, second = read(export.write(tmp_path / "t.sqlite"))
    assert (len(first.device), len(second.device)) == (4, 2)
    assert (first.launch >= 0).sum() == 3
    assert (second.launch >= 0).all()
    assert {thread.pid for thread in second.threads} == {PID + 1}


def test_kernels_alone(tmp_path):
    export = Export()
    for number in range(30):
        export.kernel("gemm", number * 1000, number * 1000 + 600, number, process=None)
    (t,) = read(export.write(tmp_path / "t.sqlite"))
    made = report(Ranks.of([t]), [])
    assert made.trace.device["busy"] == pytest.approx(0.6, abs=0.02)
    assert made.run.notes


def test_the_exports_own_enumerations_go_first(tmp_path):
    export = training(1)
    export.copy(21, 40, 41, 500_000, 510_000, 5, 64)
    export.copy(1, 1, 2, 520_000, 530_000, 6, 64)
    export.add("ENUM_CUDA_MEMCPY_OPER", id=21, name="X", label="Device-to-Host")
    for number, label in ((40, "Device Static"), (41, "Pageable"), (None, None), (1, "Pinned")):
        export.add("ENUM_CUDA_MEM_KIND", id=number, name="X", label=label)
    (t,) = read(export.write(tmp_path / "t.sqlite"))
    copies = [t.names[n] for n, kind in zip(t.device.name, t.device.kind) if kind == DeviceKind.MEMCPY]
    assert copies == ["Memcpy DtoH (Device -> Pageable)", "Memcpy HtoD (Pinned -> Device)"]


def test_values_of_another_type_cost_only_themselves(tmp_path):
    export = training(1)
    export.range("text", "soon", "later")
    export.range("real", 1.5, 2.5)
    export.range(f"aten::add, seq = 4, op_id = {10**30}", 100, 200)
    export.add("TARGET_INFO_GPU", id="zero", name=7, totalMemory="much", smCount=None)
    export.add("TARGET_INFO_GPU", id=0, name="GPU Y", totalMemory="much", smCount=b"x")
    export.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs="now", systemClockNs=2.5)
    export.kernel("k", "x", None, 3)
    (t,) = read(export.write(tmp_path / "t.sqlite"))
    assert t.problems["events without a time"] == 3
    assert "aten::add" in t.names
    assert [(device.id, device.memory_bytes) for device in t.devices] == [(0, None)]


def test_ranges_that_never_end_are_counted(tmp_path):
    export = training(1)
    export.range("open", 5, None)
    export.range(None, 7, 9, text_id=export.string("registered"))
    export.range("a domain", 0, None, kind=75)
    (t,) = read(export.write(tmp_path / "t.sqlite"))
    assert t.problems == {"ranges without a beginning or an end": 1}
    assert "registered" in t.names


def test_without_a_device_the_busiest_process_is_read(tmp_path):
    export = Export()
    export.range("work", 0, 10)
    export.range("more", 20, 30)
    export.range("other", 0, 10, tid=PROCESS + (7 << 24))
    (t,) = read(export.write(tmp_path / "t.sqlite"))
    assert (len(t.host), len(t.device)) == (2, 0)


def test_files_that_are_no_export(tmp_path):
    other = Export()
    other.add("songs", title="x")
    with pytest.raises(TraceError, match="no export of Nsight"):
        read(other.write(tmp_path / "songs.sqlite"))
    empty = Export()
    empty.add("NVTX_EVENTS", start=None, end=None, eventType=59, text="", textId=None, globalTid=None)
    with pytest.raises(TraceError, match="no CUDA, NVTX or API events"):
        read(empty.write(tmp_path / "empty.sqlite"))


def test_the_file_and_its_folder_stay_as_they_are(tmp_path):
    path = training().write(tmp_path / "t.sqlite")
    before = path.read_bytes()
    read(path)
    assert [p.name for p in tmp_path.iterdir()] == ["t.sqlite"]
    assert path.read_bytes() == before


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(data=st.data())
def test_damage_never_crashes(tmp_path, data):
    path = tmp_path / "damaged.sqlite"
    path.unlink(missing_ok=True)
    content = bytearray(training().write(path).read_bytes())
    for _ in range(data.draw(st.integers(1, 30))):
        content[data.draw(st.integers(16, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(17, len(content)))])
    try:
        for t in read(path):
            assert len(t.parent) == len(t.host)
    except TraceError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either is right


def test_a_damaged_list_of_tables_that_is_no_text_either(tmp_path):
    """What sqlite3 says of it quotes the damaged bytes."""
    path = training().write(tmp_path / "t.sqlite")
    content = path.read_bytes()
    at = content.index(b"CREATE TABLE")
    path.write_bytes(content[:at] + b"\x80\xff" * 6 + content[at + 12 :])
    with pytest.raises(TraceError, match="damaged SQLite file"):
        read(path)


def test_a_report_without_nsys_says_how(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "r.nsys-rep").write_bytes(b"report")
    with pytest.raises(TraceError, match=r"nsys export --type sqlite r\.nsys-rep"):
        read(tmp_path / "r.nsys-rep")


def test_a_report_is_converted_with_nsys(tmp_path, monkeypatch):
    """A stand-in for nsys, which is called as the real one is."""
    exported = training().write(tmp_path / "exported")
    program = tmp_path / "nsys"
    program.write_text(
        f'#!/bin/sh\n[ "$1 $2 $3 $4" = "export --type sqlite --output" ] && cp {exported} "$5" && [ -f "$6" ]\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "r.nsys-rep").write_bytes(b"report")
    (t,) = read(tmp_path / "r.nsys-rep")
    assert len(t.device) == 2
    assert t.path.endswith("r.nsys-rep")
    program.write_text("#!/bin/sh\necho 'Importer error: not a report' >&2\nexit 1\n")
    with pytest.raises(TraceError, match="Importer error: not a report"):
        read(tmp_path / "r.nsys-rep")


def test_a_locked_export_is_read_all_the_same(tmp_path):
    path = training().write(tmp_path / "t.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        assert len(read(path)[0].device) == 2
    connection.close()

"""Files of torch.profiler and its like: what they say, in whatever layout."""

from __future__ import annotations

import gzip
import json

import pytest
from kineto_files import MAIN, START_US, api, document, host, names, small, step, work, write

from unstall.trace.readers import read
from unstall.trace.timeline import CopyKind, DeviceKind, HostKind, HostMemory, WaitKind


def kinds(timeline):
    return {timeline.names[n]: HostKind(k) for n, k in zip(timeline.host.name.tolist(), timeline.host.kind.tolist())}


def test_a_small_trace(timeline_of):
    entries = {
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
        "deviceProperties": [
            {"id": 0, "name": "GPU X", "totalGlobalMem": 7, "numSms": 9, "computeMajor": 9, "computeMinor": 0}
        ],
    }
    t = timeline_of(document(small(3), **entries))
    assert (len(t.host), len(t.device), len(t.steps)) == (21, 9, 3)
    assert not t.problems
    assert (t.rank, t.world_size) == (3, 8)
    assert (t.devices[0].name, t.devices[0].memory_bytes, t.devices[0].multiprocessors, t.devices[0].compute) == (
        "GPU X",
        7,
        9,
        "9.0",
    )
    assert t.origin_ns == START_US * 1000
    assert t.steps.number.tolist() == [0, 1, 2]
    assert t.steps.start_ns.tolist() == [0, 1_000_000, 2_000_000]
    assert t.steps.dur_ns.tolist() == [990_000] * 3
    assert t.threads[t.main_thread].tid == MAIN
    assert t.threads[t.main_thread].name == "thread 100 (python)"
    assert t.metadata["schemaVersion"] == 1
    assert t.events == 31


def test_launches_and_parents(timeline_of):
    t = timeline_of(document(small(1)))
    launched_by = [t.names[t.host.name[row]] for row in t.launch]
    assert launched_by == ["cudaLaunchKernel", "cudaLaunchKernel", "cudaMemcpyAsync"]
    around = {t.names[t.host.name[row]]: t.names[t.host.name[p]] if p >= 0 else None for row, p in enumerate(t.parent)}
    assert around["aten::addmm"] == "aten::linear"
    assert around["aten::linear"] == "ProfilerStep#0"
    assert around["ProfilerStep#0"] is None
    assert around["cudaStreamSynchronize"] == "ProfilerStep#0"


def test_copies_say_where_from_and_to(timeline_of):
    copies = [
        "Memcpy HtoD (Pageable -> Device)",
        "Memcpy DtoH (Device -> Pinned)",
        "Memcpy DtoD (Device -> Device)",
        "Memcpy HtoD (Host -> Device)",
        "Memset (Device)",
    ]
    t = timeline_of(
        [
            work(name, n * 10, 1, cat="gpu_memset" if "set" in name else "gpu_memcpy", bytes=n)
            for n, name in enumerate(copies)
        ]
    )
    assert [CopyKind(c) for c in t.device.copy] == [
        CopyKind.H2D,
        CopyKind.D2H,
        CopyKind.D2D,
        CopyKind.H2D,
        CopyKind.NONE,
    ]
    assert [HostMemory(m) for m in t.device.memory] == [
        HostMemory.PAGEABLE,
        HostMemory.PINNED,
        HostMemory.UNKNOWN,
        HostMemory.UNKNOWN,
        HostMemory.UNKNOWN,
    ]
    assert [DeviceKind(k) for k in t.device.kind][-1] == DeviceKind.MEMSET
    assert t.device.bytes.tolist() == [0, 1, 2, 3, 4]


def test_collectives_by_name_and_by_facts(timeline_of):
    metrics = {
        "Collective name": "allreduce",
        "In msg nelems": 1024,
        "Out msg nelems": 1024,
        "Group size": 8,
        "dtype": "BFloat16",
        "Process Group Name": "0",
    }
    t = timeline_of(
        [
            work("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 0, 5, **metrics),
            work("gemm", 10, 5),
            work("ncclKernel_x", 20, 5),
        ]
    )
    assert [DeviceKind(k) for k in t.device.kind] == [DeviceKind.COLLECTIVE, DeviceKind.KERNEL, DeviceKind.COLLECTIVE]
    one = t.collectives[t.device.collective[0]]
    assert (one.name, one.group, one.group_size) == ("allreduce", "0", 8)
    assert t.device.collective[2] == -1


def test_waits_between_streams(timeline_of):
    wait = work("Stream Wait Event", 5, 1, 7, "cuda_sync", wait_on_stream=20, wait_on_cuda_event_record_corr_id=6)
    t = timeline_of([work("gemm", 0, 5), wait, work("Context Sync", 6, 1, 8, "cuda_sync", stream=-1)])
    assert [WaitKind(k) for k in t.waits.kind] == [WaitKind.STREAM_WAIT, WaitKind.DEVICE_SYNC]
    assert (t.waits.on_stream[0], t.waits.correlation[0]) == (20, 7)
    assert len(t.device) == 1


def test_input_shapes_are_kept_once(timeline_of):
    conv = host("aten::conv2d", 40, 5, Input_Dims=[[1, 3, 8, 8]], Input_type=["float"], Concrete_Inputs=["", "[2, 2]"])
    t = timeline_of(document([*small(3), conv]))
    linear = [n for n, name in enumerate(names(t, t.host)) if name == "aten::linear"]
    assert len({int(t.host.inputs[n]) for n in linear}) == 1
    shapes = t.inputs(int(t.host.inputs[linear[0]]))
    assert shapes.dims == ([8, 4], [4, 2])
    assert shapes.types == ("float", "float")
    assert shapes.concrete == ()
    row = names(t, t.host).index("aten::conv2d")
    assert t.inputs(int(t.host.inputs[row])).concrete == ("", "[2, 2]")
    assert t.inputs(-1).dims == ()


def test_graph_launches_start_many_kernels(timeline_of):
    graph = [
        api("cudaGraphLaunch", 0, 5, 9),
        work("a", 10, 1, 9),
        work("b", 12, 1, 9),
        work("c", 14, 1, 10, graph_node_id=5),
        work("d", 16, 1, 11),
    ]
    t = timeline_of(document([*graph, api("cudaLaunchKernel", 6, 1, 11)]))
    assert t.device.graph.tolist() == [True, True, True, False]
    assert [t.names[t.host.name[row]] if row >= 0 else None for row in t.launch] == [
        "cudaGraphLaunch",
        "cudaGraphLaunch",
        None,
        "cudaLaunchKernel",
    ]


def test_rocm_names(timeline_of):
    t = timeline_of(
        [
            api("hipLaunchKernel", 0, 5, 3),
            work("Cijk_Ailk", 10, 5, 3),
            work("rcclGenericKernel", 20, 5),
            api("hipGraphLaunch", 2, 1, 4),
        ]
    )
    assert kinds(t)["hipLaunchKernel"] == HostKind.RUNTIME
    assert [DeviceKind(k) for k in t.device.kind] == [DeviceKind.KERNEL, DeviceKind.COLLECTIVE]


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("CopyHostToDevice", CopyKind.H2D),
        ("CopyDeviceToHost", CopyKind.D2H),
        ("MEMORY_COPY_DEVICE_TO_DEVICE", CopyKind.D2D),
        ("Memcpy PtoP (Device -> Device)", CopyKind.P2P),
        ("Memcpy Host-to-Device", CopyKind.H2D),
        ("Memcpy", CopyKind.NONE),
    ],
)
def test_names_of_copies(timeline_of, name, direction):
    t = timeline_of([work(name, 0, 5, cat="gpu_memcpy"), work("gemm", 6, 5)])
    assert t.device.copy.tolist() == [direction, CopyKind.NONE]


def test_copies_that_are_written_as_kernels(timeline_of):
    """Some versions of Kineto do so on ROCm."""
    t = timeline_of([work("CopyHostToDevice", 0, 5), work("copyHostToDeviceKernel<float>", 6, 5)])
    assert [DeviceKind(kind) for kind in t.device.kind] == [DeviceKind.MEMCPY, DeviceKind.KERNEL]


def test_loader_events_old_and_new(timeline_of):
    name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    for category in ("Operator", "cpu_op", "user_annotation"):
        t = timeline_of(
            [
                host(name, 0, 5, category),
                host("ProfilerStep#7", 0, 9, category),
                host("Optimizer.step#SGD.step", 6, 2, category),
            ]
        )
        assert kinds(t) == {
            name: HostKind.LOADER,
            "ProfilerStep#7": HostKind.STEP,
            "Optimizer.step#SGD.step": HostKind.ANNOTATION,
        }


def test_old_layout_with_text_for_threads_and_streams(timeline_of):
    kernel = {
        "ph": "X",
        "cat": "Kernel",
        "name": "k",
        "pid": 0,
        "tid": "stream 7",
        "ts": 5,
        "dur": 1,
        "args": {"device": 0},
    }
    call = {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": "55", "tid": "56", "ts": 1, "dur": 1}
    odd = {"ph": "X", "cat": "Operator", "name": "x", "pid": "Somewhere", "tid": "a thread", "ts": 1, "dur": 1}
    t = timeline_of([kernel, call, odd])
    assert t.device.stream.tolist() == [7]
    assert sorted((thread.pid, thread.tid, thread.name, thread.process) for thread in t.threads) == [
        (-1, -1, "a thread", "Somewhere"),
        (55, 56, "", ""),
    ]


@pytest.mark.parametrize(
    "layout", [{}, {"indent": 2}, {"indent": 0, "separators": (" ,\r\n", "\t:\n")}, {"separators": (",", ":")}]
)
def test_no_layout_is_relied_on(timeline_of, layout):
    content = json.dumps(document(small(2), traceName='}, {"ph": "X"]'), **layout)
    t = timeline_of(content.encode())
    assert (len(t.host), len(t.device), t.problems) == (14, 6, {})
    assert t.metadata["traceName"] == '}, {"ph": "X"]'


def test_entries_may_come_before_or_after_the_events(timeline_of):
    before = {"a": [1, {"b": "]"}], "traceEvents": small(1), "distributedInfo": {"rank": 2}}
    t = timeline_of(before)
    assert (t.rank, t.metadata["a"], len(t.host)) == (2, [1, {"b": "]"}], 7)


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "no-suffix"])
def test_packed_or_plain_by_content(timeline_of, name):
    assert len(timeline_of(small(1), name).host) == 7
    assert len(timeline_of(gzip.compress(json.dumps(small(1)).encode()), "packed").host) == 7


def test_other_packings(timeline_of):
    import bz2
    import lzma

    data = json.dumps(small(1)).encode()
    for pack in (bz2.compress, lzma.compress):
        assert len(timeline_of(pack(data)).host) == 7


def test_times_are_exact_to_the_nanosecond(timeline_of):
    text = b'[{"ph":"X","cat":"cpu_op","ts":1700000000000000.123,"dur":0.001},{"ph":"X","cat":"cpu_op","ts":1.7000000000000001245e15,"dur":1e3}]'
    t = timeline_of(text)
    assert t.origin_ns == 1_700_000_000_000_000_123
    assert t.host.start_ns.tolist() == [0, 2]
    assert t.host.dur_ns.tolist() == [1, 1_000_000]


def test_begin_and_end_pairs(timeline_of):
    def half(phase, ts, name="r", tid=1):
        return {"ph": phase, "cat": "user_annotation", "name": name, "pid": 1, "tid": tid, "ts": ts}

    events = [
        half("B", 0, "outer"),
        half("B", 2, "inner"),
        half("E", 5),
        half("E", 9),
        half("E", 9, tid=2),
        half("B", 3, "open", tid=3),
    ]
    t = timeline_of(events)
    lengths = {t.names[n]: d for n, d in zip(t.host.name.tolist(), t.host.dur_ns.tolist())}
    assert lengths == {"outer": 9000, "inner": 3000, "open": 6000}
    assert t.problems == {"ranges without a beginning or an end": 2}


def test_without_correlation_ids_the_operator_started_it(timeline_of):
    events = [host("aten::mm", 0, 9, External_id=5), work("gemm", 20, 5, External_id=5), work("lost", 30, 5)]
    t = timeline_of(events)
    assert [t.names[t.host.name[row]] if row >= 0 else None for row in t.launch] == ["aten::mm", None]


def test_cpu_only(timeline_of):
    t = timeline_of([step(0, 0, 10), host("aten::mm", 1, 5)])
    assert (len(t.device), len(t.launch), len(t.host)) == (0, 0, 2)


def test_two_devices_in_one_process(timeline_of):
    t = timeline_of([work("a", 0, 5, device=0), work("b", 0, 5, device=1)])
    assert sorted(t.device.device.tolist()) == [0, 1]


def test_unknown_categories_are_placed_by_their_facts(timeline_of):
    t = timeline_of(
        [
            work("k", 0, 1, cat="npu_task"),
            host("h", 0, 1, "something"),
            {"ph": "X", "ts": START_US, "dur": 1, "name": "bare"},
        ]
    )
    assert len(t.device) == 1
    assert set(kinds(t).values()) == {HostKind.OTHER}


def test_what_is_not_timed_work_is_left_out(timeline_of):
    others = [
        {"ph": "s", "cat": "ac2g", "id": 1, "ts": START_US, "pid": 0, "tid": 7, "name": "ac2g"},
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": START_US, "pid": 1, "tid": 1},
        work("ProfilerStep#0", 0, 100, cat="gpu_user_annotation"),
        {
            "ph": "X",
            "cat": "Trace",
            "name": "PyTorch Profiler (0)",
            "pid": "Spans",
            "tid": "x",
            "ts": START_US,
            "dur": 5,
        },
    ]
    t = timeline_of([*small(1), *others])
    assert (len(t.host), len(t.device), t.problems) == (7, 3, {})


@pytest.mark.parametrize(
    "name, rank",
    [
        ("rank3.json", 3),
        ("rank-34.Jul_15.pt.trace.json", 34),
        ("worker7_step_12.json", 7),
        ("t_rank_0.json", 0),
        ("frank3.json", None),
        ("trace.json", None),
    ],
)
def test_the_rank_from_the_name(timeline_of, name, rank):
    assert timeline_of(small(1), name).rank == rank


def test_progress_reaches_the_end(tmp_path):
    told = []
    read(write(tmp_path / "t.json", small(50)), told.append)
    assert told[-1] == 1.0

"""The recorder in C and the one in Python: the same calls, the same file."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import traceback

import pytest
from recorders import load

from unstall.benchmark.reader import RECORD, read_process, read_spans
from unstall.child.layout import ERROR, MAIN, MODULE, NETWORK, NOGRAD

FORWARD = 3  # a tick kind
TAIL = 4096


def add(a, b=1, *, c=0):
    """The sum of all."""
    return a + b + c


def fail(*args, **kwargs):
    raise KeyError("on purpose")


# ---------------------------------------------------------------- the file


def test_an_open_recording_has_a_header_and_no_spans(recorder):
    header = recorder.header()
    assert header["magic"] == b"UNSTALL1"
    assert header["record_bytes"] == RECORD.itemsize
    assert (header["pid"], header["parent"]) == (os.getpid(), os.getppid())
    assert header["opened"] > 0
    assert len(recorder.spans()) == 0


def test_a_call_is_one_record_with_its_name_time_and_first_argument(recorder):
    subject = object()
    recorder.api.wrap(lambda first: None, "file.one")(subject)
    (span,) = recorder.spans()
    assert recorder.names() == ["file.one"]
    assert span["start"] >= recorder.header()["opened"]
    assert span["self"] == span["dur"]
    assert span["arg"] == id(subject)
    assert span["depth"] == 0
    assert span["thread"] == threading.get_native_id()
    assert span["flags"] & MAIN
    assert not span["flags"] & (ERROR | MODULE | NETWORK | NOGRAD)


def test_an_unusable_path_is_an_os_error(closed_recorder, tmp_path):
    with pytest.raises(OSError) as caught:
        closed_recorder.api.open(str(tmp_path / "nowhere" / "rec-1.bin"))
    assert caught.value.errno is not None
    assert closed_recorder.api.wrap(add, "file.unopened")(1, 2) == 3


def test_opening_again_begins_a_new_file(recorder, tmp_path):
    work = recorder.api.wrap(add, "file.again")
    work(1)
    recorder.api.open(str(tmp_path / "second.bin"))
    work(1)
    work(1)
    assert len(recorder.spans()) == 1
    assert len(read_spans(tmp_path / "second.bin")[0]) == 2


def test_a_span_that_is_open_while_the_file_changes_harms_neither(recorder, tmp_path):
    def reopen():
        recorder.api.open(str(tmp_path / "second.bin"))

    recorder.api.wrap(reopen, "file.across", group=0)()
    recorder.api.wrap(add, "file.after")(1)
    spans, _ = read_spans(tmp_path / "second.bin")
    assert [int(span["depth"]) for span in spans] == [0]
    assert len(recorder.spans()) == 0


def test_many_records_reach_the_file_in_order(recorder):
    number = 2 * TAIL + 100
    work = recorder.api.wrap(add, "file.many")
    for index in range(number):
        work(index)
    spans = recorder.spans()
    assert len(spans) == number
    assert recorder.header()["flushed"] == 2 * TAIL
    assert recorder.header()["dropped"] == 0
    assert (spans["start"][1:] >= spans["start"][:-1]).all()
    assert [int(arg) for arg in spans["arg"][:3]] == [id(0), id(1), id(2)]


def test_a_full_disk_stops_the_recording_and_nothing_else(recorder_name, tmp_path):
    load(recorder_name)
    module = "_recorder" if recorder_name == "native" else "fallback"
    path = tmp_path / "rec-1.bin"
    program = f"""
import os, resource
from unstall.child import {module} as api
api.open({str(path)!r})
size = os.path.getsize({str(path)!r})
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
work = api.wrap(lambda x: x, "work")
print(sum(work(i) for i in range({TAIL} + 50)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == str(sum(range(TAIL + 50)))
    spans, header = read_spans(path)
    assert len(spans) == TAIL
    assert header["dropped"] == 50


# ---------------------------------------------------------------- nesting


def test_nested_spans_have_depths_and_self_times(recorder):
    span = recorder.api.span
    with span("nest.outer"), span("nest.first"):
        add(1)
    with span("nest.outer"):
        with span("nest.first"):
            add(1)
        with span("nest.second"):
            add(1)
    first, outer, inner_1, inner_2, outer_2 = recorder.spans()
    assert recorder.names() == ["nest.first", "nest.outer", "nest.first", "nest.second", "nest.outer"]
    assert [int(s["depth"]) for s in recorder.spans()] == [1, 0, 1, 1, 0]
    assert outer["self"] == outer["dur"] - first["dur"]
    assert outer_2["self"] == outer_2["dur"] - inner_1["dur"] - inner_2["dur"]
    assert first["self"] == first["dur"]


def test_begin_and_end_by_number(recorder):
    number = recorder.api.intern("number.span")
    assert recorder.api.intern("number.span") == number
    recorder.api.begin(number)
    recorder.api.end(number, 77)
    (span,) = recorder.spans()
    assert (recorder.names(), int(span["arg"])) == (["number.span"], 77)
    recorder.api.end(number)  # one that was never begun
    assert len(recorder.spans()) == 1


def test_ending_an_outer_span_closes_what_was_left_open_inside(recorder):
    outer, inner = recorder.api.intern("left.outer"), recorder.api.intern("left.inner")
    recorder.api.begin(outer)
    recorder.api.begin(inner)  # an exception would skip its end
    recorder.api.end(outer)
    recorder.api.wrap(add, "left.next")(1)
    assert recorder.names() == ["left.outer", "left.next"]
    assert [int(s["depth"]) for s in recorder.spans()] == [0, 0]


def test_nesting_deeper_than_is_recorded_is_harmless(recorder):
    with contextlib.ExitStack() as stack:
        for level in range(300):
            stack.enter_context(recorder.api.span(f"deep.{level}"))
    recorder.api.wrap(add, "deep.after")(1)
    depths = recorder.spans()["depth"]
    assert len(depths) >= 64 + 1
    assert depths[-1] == 0
    assert set(range(64)) <= {int(depth) for depth in depths}


def test_recursion_deeper_than_is_recorded_is_harmless(recorder):
    @recorder.api.span
    def down(n):
        return 0 if n == 0 else 1 + down(n - 1)

    assert down(200) == 200
    assert down(0) == 0
    assert recorder.spans()["depth"][-1] == 0


def test_threads_have_stacks_of_their_own(recorder):
    barrier = threading.Barrier(4)

    def work():
        with recorder.api.span("threads.outer"):
            barrier.wait(timeout=30)
            for _ in range(25):
                with recorder.api.span("threads.inner"):
                    pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spans = recorder.spans()
    assert len(spans) == 4 * 26
    assert not (spans["flags"] & MAIN).any()
    for thread_id in set(spans["thread"].tolist()):
        own = spans[spans["thread"] == thread_id]
        assert sorted(own["depth"].tolist()) == [0] + [1] * 25
    assert len(set(spans["thread"].tolist())) == 4


# ---------------------------------------------------------------- exceptions


def test_a_call_that_raises_is_flagged_and_its_exception_passed_on(recorder):
    work = recorder.api.wrap(fail, "raise.call", kind=FORWARD, group=0)
    for _ in range(2):  # the second one shows that the first left the group
        with pytest.raises(KeyError, match="on purpose"):
            work(1)
    spans = recorder.spans()
    assert len(spans) == 2
    assert (spans["flags"] & ERROR).all()
    assert spans["depth"].tolist() == [0, 0]


def test_a_block_that_raises_is_flagged_and_its_exception_passed_on(recorder):
    with pytest.raises(KeyError), recorder.api.span("raise.block"):
        fail()
    with recorder.api.span("raise.block"):
        pass
    assert [bool(s["flags"] & ERROR) for s in recorder.spans()] == [True, False]
    assert recorder.spans()["depth"].tolist() == [0, 0]


def test_a_wrapper_adds_no_frame_to_a_traceback():
    api = load("native")
    work = api.wrap(fail, "raise.frame")
    try:
        work()
    except KeyError as error:
        functions = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert functions == ["test_a_wrapper_adds_no_frame_to_a_traceback", "fail"]


# ---------------------------------------------------------------- fork


def in_child(work):
    """Run in a forked child; its exit code says whether it went well."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_records_into_a_file_of_its_own(recorder, tmp_path):
    work = recorder.api.wrap(add, "fork.work")
    work(1)

    def child():
        recorder.api.close()
        work(1)  # between close and open: passed through
        recorder.api.open(str(tmp_path / "child.bin"))
        work(1)
        work(1)

    with recorder.api.span("fork.around"):
        assert in_child(child) == 0
    work(1)
    assert recorder.names() == ["fork.work", "fork.around", "fork.work"]
    spans, header = read_spans(tmp_path / "child.bin")
    assert len(spans) == 2
    assert header["pid"] != os.getpid()
    assert header["parent"] == os.getpid()
    assert (spans["flags"] & MAIN).all()
    assert spans["depth"].tolist() == [0, 0]


def test_a_fork_inside_a_wrapped_call_is_harmless(recorder, tmp_path):
    def forks():
        def child():
            recorder.api.close()
            recorder.api.open(str(tmp_path / "child.bin"))

        return in_child(child)

    assert recorder.api.wrap(forks, "fork.inside", group=0)() == 0
    assert recorder.names() == ["fork.inside"]
    assert len(read_spans(tmp_path / "child.bin")[0]) == 0


# ---------------------------------------------------------------- what the C one alone does


def test_cpu_time_is_measured_of_names_that_last(tmp_path):
    api = load("native")
    api.open(str(tmp_path / "rec-1.bin"))
    try:
        work = api.wrap(sum, "cpu.work")
        for _ in range(60):
            work(range(200_000))
    finally:
        api.close()
    spans, _ = read_spans(tmp_path / "rec-1.bin")
    measured = spans["flags"] & 2 != 0
    assert not measured[0]  # not known to last yet
    assert 3 <= measured.sum() <= 40  # one in four, drawn
    assert (spans["cpu"][measured] > 0).all()


def test_unknown_kinds_and_groups_are_refused():
    api = load("native")
    for options in ({"kind": 99}, {"group": 99}):
        with pytest.raises(ValueError):
            api.wrap(add, "refused", **options)
    with pytest.raises(ValueError):
        api.tick(99, 1, None)


def test_the_reader_takes_what_the_recorder_wrote(recorder, tmp_path):
    recorder.api.wrap(add, "read.back")(1)
    process = read_process(tmp_path, 1)
    assert len(process.spans) == 1
    assert process.parent == os.getppid()

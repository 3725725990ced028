"""The recorder in C and the one in Python: the same calls, the same file."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import pickle
import socket
import subprocess
import sys
import threading
import traceback

import pytest
from recorders import load

from unstall.benchmark.reader import (
    ERROR,
    MAIN,
    MODULE,
    NETWORK,
    NOGRAD,
    RECORD,
    Tap,
    read_process,
    read_spans,
)

FORWARD, OTHER = 3, 7  # tick kinds
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
from unstall.benchmark import {module} as api
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


# ---------------------------------------------------------------- what a wrapped function still is


def test_the_bare_decorator_names_the_span_after_the_function(recorder):
    @recorder.api.span
    def helper(x):
        """Twice x."""
        return 2 * x

    assert helper(21) == 42
    assert recorder.names() == [helper.__qualname__]
    assert helper.__name__ == "helper"
    assert helper.__doc__ == "Twice x."
    assert helper.__module__ == __name__


def test_the_named_decorator_names_the_span(recorder):
    named = recorder.api.span("decorator.named")(add)
    assert named(1, 2, c=3) == 6
    assert recorder.names() == ["decorator.named"]


@pytest.mark.parametrize("wrong", [3, None, b"name", ("a",)])
def test_a_span_of_anything_else_is_a_type_error(recorder, wrong):
    with pytest.raises(TypeError, match="name"):
        recorder.api.span(wrong)


def test_a_wrapped_function_looks_like_the_one_it_wraps(recorder):
    wrapped = recorder.api.wrap(add, "look.alike")
    assert wrapped.__wrapped__ is add
    assert (wrapped.__name__, wrapped.__qualname__, wrapped.__module__) == ("add", "add", __name__)
    assert wrapped.__doc__ == add.__doc__
    assert inspect.signature(wrapped) == inspect.signature(add)
    assert inspect.unwrap(wrapped) is add
    assert callable(wrapped)


def test_arguments_and_results_pass_unchanged(recorder):
    def echo(*args, **kwargs):
        return args, kwargs

    wrapped = recorder.api.wrap(echo, "look.echo", kind=OTHER)
    for args, kwargs in [((), {}), ((1,), {}), ((), {"a": 1}), ((1, 2, 3), {"b": [1], "c": None})]:
        assert wrapped(*args, **kwargs) == (args, kwargs)


def test_attributes_of_the_function_are_seen_through(recorder):
    def marked():
        pass

    marked.marker = "x"
    assert recorder.api.wrap(marked, "look.attribute").marker == "x"
    with pytest.raises(AttributeError):
        recorder.api.wrap(marked, "look.attribute").no_such


@pytest.mark.parametrize("build", [functools.partial(add, 1), len, int, str.upper], ids=repr)
def test_callables_that_are_no_functions_can_be_wrapped(recorder, build):
    subject = "7"
    if isinstance(build, functools.partial):
        subject = 2
    assert recorder.api.wrap(build, "look.callable")(subject) == build(subject)
    assert recorder.names() == ["look.callable"]


def test_wrapped_methods_bind(recorder):
    class Thing:
        def double(self, x):
            return self, 2 * x

    plain = Thing.double
    Thing.double = recorder.api.wrap(Thing.double, "method.double")
    thing = Thing()
    assert thing.double(2) == (thing, 4)
    assert Thing.double(thing, 3) == (thing, 6)
    bound = thing.double
    assert bound(5) == (thing, 10)
    assert bound.__self__ is thing
    assert Thing.double.__wrapped__ is plain
    assert {int(arg) for arg in recorder.spans()["arg"]} == {id(thing)}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_wrapper_of_a_function_known_elsewhere_pickles_as_that_function(protocol):
    wrapped = load("native").wrap(add, "pickle.elsewhere")
    assert pickle.loads(pickle.dumps(wrapped, protocol)) is add


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_decorated_function_pickles_by_its_name(recorder, monkeypatch, protocol):
    """As ``@unstall.span`` leaves it in the module: a spawn worker must be able to get it."""
    decorated = recorder.api.span(add)
    monkeypatch.setattr(sys.modules[__name__], "add", decorated)
    assert pickle.loads(pickle.dumps(decorated, protocol)) is decorated


def test_a_wrapper_can_be_weakly_referenced_and_collected():
    import gc
    import weakref

    def make():
        def held():
            pass

        wrapped = load("native").wrap(held, "look.cycle")
        held.me = wrapped  # a cycle through the wrapper
        return weakref.ref(wrapped)

    reference = make()
    gc.collect()
    assert reference() is None


def test_a_closed_recorder_passes_calls_through(closed_recorder):
    api = closed_recorder.api
    work = api.wrap(add, "closed.work", kind=FORWARD, group=0)
    assert work(1, 2) == 3
    with pytest.raises(KeyError):
        api.wrap(fail, "closed.fail")()
    with api.span("closed.block"):
        pass
    number = api.intern("closed.number")
    api.begin(number)
    api.tick(FORWARD, number, None)
    api.control(1)
    api.end(number)
    assert not closed_recorder.path.exists()
    closed_recorder.open()
    assert work(2, 2) == 4
    assert closed_recorder.names() == ["closed.work"]


def test_closing_inside_nested_calls_is_harmless(recorder):
    work = recorder.api.wrap(lambda: recorder.api.close() or 5, "closed.inner", group=0)
    for level in range(5):
        work = recorder.api.wrap(lambda work=work: work(), f"closed.outer.{level}", group=level % 4)
    with recorder.api.span("closed.block"):
        assert work() == 5
    assert len(recorder.spans()) == 0
    recorder.open()
    assert recorder.api.wrap(add, "closed.after", group=0)(1) == 2
    assert recorder.names() == ["closed.after"]
    assert recorder.spans()["depth"].tolist() == [0]


def test_closing_inside_a_socket_call_is_harmless(recorder):
    class Socket:
        family = socket.AF_INET

    work = recorder.api.wrap(lambda sock: recorder.api.close(), "closed.socket", network=True)
    for level in range(3):
        work = recorder.api.wrap(work, f"closed.socket.{level}", network=True)
    assert work(Socket()) is None
    assert len(recorder.spans()) == 0


# ---------------------------------------------------------------- names


def test_new_names_are_told_once(closed_recorder):
    told = []
    closed_recorder.api.on_name(lambda number, name: told.append((number, name)))
    number = closed_recorder.api.intern("told.name")
    closed_recorder.api.intern("told.name")
    assert told == [(number, "told.name")]
    assert closed_recorder.api.names()["told.name"] == number


# ---------------------------------------------------------------- groups


def test_only_the_outermost_call_of_a_group_is_recorded(recorder):
    inner = recorder.api.wrap(add, "group.inner", kind=FORWARD, group=0)
    outer = recorder.api.wrap(lambda x: inner(inner(x)), "group.outer", kind=FORWARD, group=0)
    assert outer(1) == 3
    assert recorder.names() == ["group.outer"]
    assert Tap(recorder.path).ticks[FORWARD] == 1
    inner(1)
    assert recorder.names() == ["group.outer", "group.inner"]


def test_groups_do_not_hide_each_other(recorder):
    inner = recorder.api.wrap(add, "groups.one", group=1)
    outer = recorder.api.wrap(inner, "groups.two", group=2)
    outer(1)
    assert recorder.names() == ["groups.one", "groups.two"]


def test_with_modules_on_inner_calls_are_recorded_as_modules(recorder):
    inner = recorder.api.wrap(add, "modules.inner", kind=FORWARD, group=0)
    outer = recorder.api.wrap(lambda x: inner(x), "modules.outer", kind=FORWARD, group=0)
    recorder.api.modules(True)
    outer(1)
    recorder.api.modules(False)
    outer(1)
    assert recorder.names() == ["modules.inner", "modules.outer", "modules.outer"]
    assert [bool(s["flags"] & MODULE) for s in recorder.spans()] == [True, False, False]
    assert Tap(recorder.path).ticks[FORWARD] == 2


def test_a_group_is_one_of_a_thread(recorder):
    inner = recorder.api.wrap(add, "group.thread", group=0)

    def in_thread():
        thread = threading.Thread(target=inner, args=(1,))
        thread.start()
        thread.join()

    recorder.api.wrap(in_thread, "group.main", group=0)()
    assert recorder.names() == ["group.thread", "group.main"]


@pytest.mark.parametrize("enabled", [True, False])
def test_the_root_call_tells_whether_gradients_are_enabled(recorder, enabled):
    work = recorder.api.wrap(add, "grad.work", kind=FORWARD, group=0, grad=lambda: enabled)
    work(1)
    (span,) = recorder.spans()
    assert bool(span["flags"] & NOGRAD) is not enabled


# ---------------------------------------------------------------- ticks, the watcher, the control word


def test_ticks_are_counted_by_kind(recorder):
    tap = Tap(recorder.path)
    work = recorder.api.wrap(add, "tick.work", kind=FORWARD)
    number = recorder.api.intern("tick.number")
    for _ in range(3):
        work(1)
    recorder.api.tick(0, number, None)
    assert tap.ticks == [1, 0, 0, 3, 0, 0, 0, 0]
    assert tap.pid == os.getpid()


def test_the_watcher_hears_the_first_calls_of_each_name(recorder):
    heard = []
    recorder.api.watch(lambda *call: heard.append(call), False)
    one = recorder.api.wrap(lambda *a: None, "watch.one", kind=FORWARD)
    two = recorder.api.wrap(lambda *a: None, "watch.two", kind=OTHER)
    plain = recorder.api.wrap(lambda *a: None, "watch.plain")
    for index in range(70):
        one("self", index)
    two("other")
    plain("unheard")
    numbers = recorder.api.names()
    assert heard[:2] == [(numbers["watch.one"], 0, "self", 0), (numbers["watch.one"], 0, "self", 1)]
    assert [call[0] for call in heard].count(numbers["watch.one"]) == 64
    assert heard[-1] == (numbers["watch.two"], 0, "other", None)


def test_a_keyword_argument_is_the_watchers_second(recorder):
    heard = []
    recorder.api.watch(lambda *call: heard.append(call[2:]), False)
    recorder.api.wrap(lambda x, y: None, "watch.keyword", kind=FORWARD)("first", y="second")
    assert heard == [("first", "second")]


def test_the_watcher_hears_every_call_when_asked_to(recorder):
    heard = []
    recorder.api.watch(lambda *call: heard.append(call), True)
    work = recorder.api.wrap(add, "watch.every", kind=FORWARD)
    for index in range(200):
        work(index)
    assert len(heard) == 200


def test_the_watcher_hears_nothing_of_other_threads(recorder):
    heard = []
    recorder.api.watch(lambda *call: heard.append(call), True)
    work = recorder.api.wrap(add, "watch.thread", kind=FORWARD)
    thread = threading.Thread(target=work, args=(1,))
    thread.start()
    thread.join()
    assert heard == []
    assert Tap(recorder.path).ticks[FORWARD] == 1


def test_the_control_word_reaches_the_watcher_until_it_is_answered(recorder):
    heard = []
    recorder.api.watch(lambda number, control, *rest: heard.append(control), False)
    work = recorder.api.wrap(add, "control.work", kind=FORWARD)
    for index in range(64):
        work(index)
    tap = Tap(recorder.path)
    heard.clear()
    work(1)
    assert heard == []
    tap.control = 2
    assert tap.control == 2
    work(1)
    work(1)
    assert heard == [2, 2]
    recorder.api.control(0)
    assert tap.control == 0
    work(1)
    assert heard == [2, 2]


def test_what_the_watcher_raises_ends_the_program_before_the_call(recorder):
    called = []

    def stop(*call):
        raise SystemExit(4)

    work = recorder.api.wrap(called.append, "watch.stop", kind=FORWARD, group=0)
    recorder.api.watch(stop, False)
    with pytest.raises(SystemExit):
        work(1)
    assert called == []
    recorder.api.watch(None, False)
    work(2)
    assert called == [2]
    assert recorder.spans()["depth"].tolist() == [0]


# ---------------------------------------------------------------- the network


def internet_pair():
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        peer, _ = server.accept()
    return client, peer


def test_calls_on_internet_sockets_are_recorded_with_their_bytes(recorder):
    send = recorder.api.wrap(socket.socket.sendto, "~net.test.send", network=True)
    recv = recorder.api.wrap(socket.socket.recv, "~net.test.recv", network=True)
    recvfrom = recorder.api.wrap(socket.socket.recvfrom, "~net.test.recvfrom", network=True)
    client, peer = internet_pair()
    with client, peer:
        assert send(client, b"x" * 100, peer.getsockname()) == 100
        assert recv(peer, 40) == b"x" * 40
        assert recvfrom(peer, 100)[0] == b"x" * 60
    spans = recorder.spans()
    assert spans["arg"].tolist() == [100, 40, 60]
    assert (spans["flags"] & NETWORK).all()


def test_local_sockets_are_no_network(recorder):
    recv = recorder.api.wrap(socket.socket.recv, "~net.test.local", network=True)
    left, right = socket.socketpair(socket.AF_UNIX)
    with left, right:
        left.sendall(b"abc")
        assert recv(right, 10) == b"abc"
    assert len(recorder.spans()) == 0


def test_a_socket_call_that_raises_is_flagged(recorder):
    recv = recorder.api.wrap(socket.socket.recv, "~net.test.blocking", network=True)
    client, peer = internet_pair()
    with client, peer:
        peer.setblocking(False)
        with pytest.raises(BlockingIOError):
            recv(peer, 10)
    (span,) = recorder.spans()
    assert span["flags"] & ERROR
    assert span["arg"] == 0


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
        for _ in range(6):
            work(range(200_000))
    finally:
        api.close()
    spans, _ = read_spans(tmp_path / "rec-1.bin")
    assert spans["flags"][-1] & 2
    assert 0 < spans["cpu"][-1] / 1e7
    assert not spans["flags"][0] & 2  # not known to last yet


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
    assert process.opened_s > 0

"""What the recorder wraps: still the function it was, and recorded as it should be."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import socket
import sys
import threading
import types

import pytest
from recorders import load

from unstall.child.layout import ERROR, MODULE, NETWORK, NOGRAD
from unstall.child.tap import Tap

FORWARD, OTHER = 3, 7  # tick kinds


def add(a, b=1, *, c=0):
    """The sum of all."""
    return a + b + c


def fail(*args, **kwargs):
    raise KeyError("on purpose")


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
    assert recorder.api.inner(wrapped) is add
    assert recorder.api.inner(add) is add
    assert (wrapped.__name__, wrapped.__qualname__, wrapped.__module__) == ("add", "add", __name__)
    assert wrapped.__doc__ == add.__doc__
    assert inspect.signature(wrapped) == inspect.signature(add)
    assert callable(wrapped)


def test_inspect_takes_what_is_wrapped_for_the_function():
    wrapped = load("native").wrap(add, "look.inspect")
    assert inspect.isfunction(wrapped)
    assert isinstance(wrapped, types.FunctionType)
    assert not hasattr(wrapped, "__wrapped__")
    assert inspect.getsourcefile(wrapped) == inspect.getsourcefile(add)
    assert inspect.getsource(wrapped) == inspect.getsource(add)
    assert inspect.getfullargspec(wrapped) == inspect.getfullargspec(add)
    assert dir(wrapped) == dir(add)


def test_a_mark_of_an_earlier_decorator_stays():
    @functools.wraps(add)
    def decorated(*args, **kwargs):
        return add(*args, **kwargs)

    wrapped = load("native").wrap(decorated, "look.decorated")
    assert wrapped.__wrapped__ is add
    assert inspect.unwrap(wrapped) is add
    assert load("native").inner(wrapped) is decorated


def test_a_copy_of_a_wrapper_found_by_its_name_is_itself(monkeypatch):
    wrapped = load("native").wrap(add, "look.copied")
    monkeypatch.setattr(sys.modules[__name__], "add", wrapped)
    assert copy.copy(wrapped) is copy.deepcopy(wrapped) is wrapped


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


def test_attributes_can_be_set_and_removed(recorder):
    wrapped = recorder.api.wrap(lambda: None, "look.set")
    wrapped.marker = 5
    assert wrapped.marker == 5
    del wrapped.marker
    assert not hasattr(wrapped, "marker")


@pytest.mark.parametrize(
    "build", [functools.partial(add, 1), len, int, str.upper], ids=["partial", "built-in", "class", "method"]
)
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
    assert recorder.api.inner(Thing.double) is plain
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


# ---------------------------------------------------------------- what is asked after a call


def test_what_is_asked_after_a_call_is_the_records_argument(recorder):
    asked = []

    def after(*args, **kwargs):
        asked.append((args, kwargs))
        return 7 << 48 | 12

    work = recorder.api.wrap(add, "after.work", after=after)
    assert work(1, 2, c=3) == 6
    assert asked == [((6, 1, 2), {"c": 3})]
    (span,) = recorder.spans()
    assert (int(span["arg"]) >> 48, int(span["arg"]) & 0xFFFF) == (7, 12)


def test_many_arguments_are_handed_on_as_well(recorder):
    asked = []
    work = recorder.api.wrap(lambda *args: len(args), "after.many", after=lambda *args: asked.append(args) or 1)
    assert work(*range(40)) == 40
    assert asked == [(40, *range(40))]


def test_nothing_is_asked_after_a_call_that_raises(recorder):
    asked = []
    with pytest.raises(KeyError):
        recorder.api.wrap(fail, "after.fail", after=lambda *args: asked.append(args) or 1)()
    assert not asked


def test_what_a_signal_handler_raises_meanwhile_reaches_the_program(recorder):
    def after(*args):
        raise KeyboardInterrupt

    work = recorder.api.wrap(add, "after.interrupt", after=after)
    with pytest.raises(KeyboardInterrupt):
        work(1)
    (span,) = recorder.spans()
    assert span["flags"] & ERROR


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

"""Each seam, installed into a stand-in for its library: what is recorded, and that the library still is what it was."""

from __future__ import annotations

import logging
import sys
from types import ModuleType, SimpleNamespace
from typing import TypeVar

import pytest

from unstall.child import recording
from unstall.child.layout import ERROR, NETWORK, NOGRAD
from unstall.child.seams import (
    autograd,
    callbacks,
    collectives,
    collector,
    cuda,
    dynamo,
    loader,
    modules,
    network,
    onnxruntime,
    optimizer,
    process_groups,
)
from unstall.child.tap import Tap
from unstall.records.vocabulary import Tick

T = TypeVar("T")


def ticks(recorded, kind):
    return Tap(recorded.path).ticks[kind]


# ---------------------------------------------------------------- torch


def test_each_outermost_module_call_is_a_forward(recorded):
    class Module:
        def __call__(self, x):
            return self.forward(x)

    class Double(Module):
        def forward(self, x):
            return 2 * x

    class Twice(Module):
        def __init__(self):
            self.inner = Double()

        def forward(self, x):
            return self.inner(self.inner(x))

    enabled = [True]
    torch = SimpleNamespace(_C=SimpleNamespace(is_grad_enabled=lambda: enabled[0]))
    modules.TARGETS["torch.nn.modules.module"](SimpleNamespace(Module=Module, torch=torch, __name__="m"))
    model = Twice()
    assert model(3) == 12
    enabled[0] = False
    assert model(1) == 4
    spans = recorded.spans()
    assert recorded.names() == ["~forward", "~forward"]
    assert spans["arg"].tolist() == [id(model), id(model)]
    assert [bool(flags & NOGRAD) for flags in spans["flags"]] == [False, True]
    assert ticks(recorded, Tick.FORWARD) == 2


def test_the_engine_of_backward_is_recorded(recorded):
    library = SimpleNamespace(_engine_run_backward=lambda outputs: None)
    autograd.TARGETS["torch.autograd"](library)
    library._engine_run_backward((1,))
    assert recorded.names() == ["~backward"]
    assert ticks(recorded, Tick.BACKWARD) == 1


class FakeOptimizer:
    """torch.optim.optimizer, as far as the hooks common to all optimizers go."""

    def __init__(self):
        self.pre, self.post = [], []
        self.Optimizer = type("Optimizer", (), {"__init__": lambda optimizer, groups=(): None})

    def register_optimizer_step_pre_hook(self, hook):
        self.pre.append(hook)
        return SimpleNamespace(remove=lambda: self.pre.remove(hook))

    def register_optimizer_step_post_hook(self, hook):
        self.post.append(hook)
        return SimpleNamespace(remove=lambda: self.post.remove(hook))

    def begin(self, *args, **kwargs):
        """Call what comes before a step: what replaces its arguments, the optimizer first; None where nothing does."""
        replaced = [hook(self, (self, *args), kwargs) for hook in self.pre]
        return next((each for each in replaced if each is not None), None)

    def end(self):
        for hook in self.post:
            assert hook(self, (self,), {}) is None

    def step(self):
        assert self.begin() is None
        self.end()


@pytest.fixture(params=["torch cannot compile yet", "torch can compile"])
def optimizers(recorded, monkeypatch, request):
    """torch.optim.optimizer with its hooks, of both kinds."""
    library = FakeOptimizer()
    torch = SimpleNamespace(compiler=SimpleNamespace(is_compiling=lambda: False))
    monkeypatch.setitem(sys.modules, "torch", torch)
    if request.param == "torch can compile":
        monkeypatch.setitem(sys.modules, "torch._dynamo", SimpleNamespace())
    else:
        monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    optimizer.TARGETS["torch.optim.optimizer"](library)
    return library


def test_optimizer_steps_are_recorded_by_their_hooks(recorded, optimizers):
    optimizers.step()
    (span,) = recorded.spans()
    assert recorded.names() == ["~optimizer"]
    assert int(span["arg"]) == id(optimizers)
    assert ticks(recorded, Tick.OPTIMIZER) == 1


def test_a_new_optimizer_is_recorded(recorded, optimizers):
    made = optimizers.Optimizer(groups=[])
    (span,) = recorded.spans()
    assert (recorded.names(), int(span["arg"])) == (["~optimizer.made"], id(made))
    assert ticks(recorded, Tick.OPTIMIZER) == 0


@pytest.mark.parametrize("named", [False, True])
def test_a_closure_that_a_step_is_given_is_no_part_of_the_update(recorded, optimizers, named):
    def closure():
        return 3

    args, kwargs = optimizers.begin(closure=closure) if named else optimizers.begin(closure)
    assert args[0] is optimizers and (kwargs["closure"] if named else args[1])() == 3
    optimizers.end()
    assert recorded.names() == ["~closure", "~optimizer"]
    inner, outer = recorded.spans()
    assert int(outer["self"]) == int(outer["dur"]) - int(inner["dur"])


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {}), ((None,), {}), (([1.0],), {}), ((FakeOptimizer(),), {}), ((), {"closure": None}), ((), {"closure": 3})],
)
def test_what_else_a_step_is_given_stays_what_it_is(optimizers, args, kwargs):
    assert optimizers.begin(*args, **kwargs) is None


@pytest.mark.parametrize("compiling", [False, True])
def test_once_torch_can_compile_its_traces_are_left_alone(recorded, monkeypatch, compiling):
    library = FakeOptimizer()
    optimizer.TARGETS["torch.optim.optimizer"](library)
    torch = SimpleNamespace(compiler=SimpleNamespace(is_compiling=lambda: compiling))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.optim.optimizer", library)
    optimizer.TARGETS["torch._dynamo"](None)
    library.step()
    assert len(recorded.spans()) == ticks(recorded, Tick.OPTIMIZER) == (not compiling)


def fake_loader_module():
    class _BaseDataLoaderIter:
        def __init__(self, loader):
            self.left = list(loader.items)

        def __next__(self):
            if not self.left:
                raise StopIteration
            return self.left.pop(0)

        def __iter__(self):
            return self

    class DataLoader:
        def __init__(self, items):
            self.items = items

        def __iter__(self):
            return _BaseDataLoaderIter(self)

    return SimpleNamespace(_BaseDataLoaderIter=_BaseDataLoaderIter, DataLoader=DataLoader)


def test_epochs_and_waits_for_batches_are_recorded(recorded):
    library = fake_loader_module()
    loader.TARGETS["torch.utils.data.dataloader"](library)
    assert list(library.DataLoader([1, 2])) == [1, 2]
    assert recorded.names() == ["~data.iter", "~data.next", "~data.next", "~data.next"]
    assert [bool(flags & ERROR) for flags in recorded.spans()["flags"]] == [False, False, False, True]
    assert ticks(recorded, Tick.DATA) == 3


def test_fetch_and_collate_are_recorded_wherever_they_run(recorded):
    class _BaseDatasetFetcher:
        def __init__(self, dataset, auto_collation, collate_fn, drop_last):
            self.dataset, self.collate_fn = dataset, collate_fn

    class _MapDatasetFetcher(_BaseDatasetFetcher):
        def fetch(self, index):
            return self.collate_fn([self.dataset[i] for i in index])

    library = SimpleNamespace(_BaseDatasetFetcher=_BaseDatasetFetcher, _MapDatasetFetcher=_MapDatasetFetcher)
    loader.TARGETS["torch.utils.data._utils.fetch"](library)
    fetcher = _MapDatasetFetcher([10, 20, 30], True, sum, False)
    assert fetcher.fetch([0, 2]) == 40
    assert recorded.names() == ["~data.collate", "~data.fetch"]


def c10d_module(**functions):
    """torch.distributed.distributed_c10d, as far as the rule goes by which collectives are told."""
    library = ModuleType("torch.distributed.distributed_c10d")
    for name, function in functions.items():
        function.__module__ = library.__name__
        setattr(library, name, function)
    return library


def test_collectives_count_once_however_they_are_built_on_each_other(recorded):
    def broadcast(tensor, src, group=None, async_op=False):
        return tensor

    def broadcast_object_list(objects, src, group=None):
        return [library.broadcast(item, src) for item in objects]

    library = c10d_module(broadcast=broadcast, broadcast_object_list=broadcast_object_list)
    collectives.TARGETS["torch.distributed.distributed_c10d"](library)
    assert library.broadcast_object_list([1, 2], 0) == [1, 2]
    assert library.broadcast(1, 0) == 1
    assert recorded.names() == ["~comm.broadcast_object_list", "~comm.broadcast"]


def test_collectives_are_told_by_their_parameters(recorded):
    def exchange_under_a_new_name(tensor, group=None, async_op=False): ...
    def send_things(things, dst=0, group=None): ...
    def get_rank(group=None): ...
    def destroy_process_group(group=None): ...
    def _helper(tensor, group=None): ...

    functions = (exchange_under_a_new_name, send_things, get_rank, destroy_process_group, _helper)
    library = c10d_module(**{function.__name__: function for function in functions})
    collectives.TARGETS["torch.distributed.distributed_c10d"](library)
    for function in functions:
        getattr(library, function.__name__)(None)
    assert recorded.names() == ["~comm.exchange_under_a_new_name", "~comm.send_things"]


def test_a_collective_tells_its_group_and_bytes_and_so_does_waiting_for_it(recorded, monkeypatch):
    torch = pytest.importorskip("torch")

    class Work:
        def wait(self, timeout=None):
            return True

    def all_gather(tensor_list, tensor, group=None, async_op=False):
        return Work() if async_op else None

    library = c10d_module(all_gather=all_gather)
    library.Work = Work
    numbers = {None: 1, "shards": 2}
    monkeypatch.setattr(process_groups, "number", lambda group, payload: numbers[group])
    collectives.TARGETS["torch.distributed.distributed_c10d"](library)
    part = torch.zeros(6)
    assert library.all_gather([part, part], part) is None
    work = library.all_gather([part], part, group="shards", async_op=True)
    assert work.wait() is True
    assert work.wait(timeout=1) is True  # again: which group it was of is not known any more
    assert recorded.names() == ["~comm.all_gather", "~comm.all_gather", "~comm.wait", "~comm.wait"]
    arguments = [int(argument) for argument in recorded.spans()["arg"]]
    assert arguments == [1 << 48 | 2 * 24, 2 << 48 | 24, 2 << 48, 0]


def test_a_call_that_cannot_be_read_is_recorded_all_the_same(recorded, monkeypatch):
    def reduce_anything(tensor, group=None, async_op=False):
        return "result"

    def number(group, payload):
        raise LookupError

    library = c10d_module(reduce_anything=reduce_anything)
    monkeypatch.setattr(process_groups, "number", number)
    collectives.TARGETS["torch.distributed.distributed_c10d"](library)
    assert library.reduce_anything(object()) == "result"
    (span,) = recorded.spans()
    assert int(span["arg"]) == 0


def test_joining_a_process_group_tells_the_rank(recorded, monkeypatch):
    told = []
    monkeypatch.setattr(recording, "emit_fact", lambda kind, **facts: told.append((kind, facts)))
    library = c10d_module(init_process_group=lambda backend: None, get_rank=lambda: 1, get_world_size=lambda: 4)
    monkeypatch.setitem(sys.modules, library.__name__, library)
    process_groups.TARGETS[library.__name__](library)
    library.init_process_group("gloo")
    ((kind, facts),) = told
    assert (kind, facts["rank"], facts["world_size"]) == ("rank", 1, 4)
    assert recorded.names() == ["~group.init_process_group"]


def test_cuda_calls_are_recorded_only_once_cuda_is_used(recorded, monkeypatch):
    class Tensor:
        def to(self, device):
            return device

        def item(self):
            return 1.5

    class Event:
        def synchronize(self):
            return None

    later = []
    library = SimpleNamespace(synchronize=lambda: None, Event=Event, _lazy_call=later.append)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=Tensor))
    cuda.TARGETS["torch.cuda"](library)
    tensor = Tensor()
    tensor.to("cpu")
    assert recorded.names() == []
    for call in later:
        call()
    assert tensor.to("cuda") == "cuda"
    assert tensor.item() == 1.5
    library.synchronize()
    Event().synchronize()
    assert recorded.names() == ["~transfer.to", "~sync.item", "~sync.synchronize", "~sync.synchronize"]


# ---------------------------------------------------------------- callbacks, collector, network


def test_callbacks_count_once_and_are_named_after_library_and_call(recorded):
    class SummaryWriter:
        def add_scalar(self, tag, value):
            return value

        def add_scalars(self, tag, values):
            return [self.add_scalar(tag, value) for value in values]

    library = SimpleNamespace(__name__="torch.utils.tensorboard.writer", SummaryWriter=SummaryWriter)
    callbacks.TARGETS["torch.utils.tensorboard.writer"](library)
    writer = SummaryWriter()
    assert writer.add_scalars("loss", [1, 2]) == [1, 2]
    assert recorded.names() == ["~callback.torch.SummaryWriter.add_scalars"]


def test_a_librarys_function_is_a_callback_too(recorded):
    library = SimpleNamespace(__name__="torch.serialization", save=lambda thing, file: file)
    callbacks.TARGETS["torch.serialization"](library)
    assert library.save({}, "model.pt") == "model.pt"
    assert recorded.names() == ["~callback.torch.save"]


def test_a_version_without_the_class_is_passed_over():
    library = SimpleNamespace(__name__="matplotlib.figure")
    callbacks.TARGETS["matplotlib.figure"](library)
    assert vars(library) == {"__name__": "matplotlib.figure"}


def test_a_log_line_is_a_callback_and_still_tells_its_own_place(recorded):
    class Logger(logging.Logger):
        handle = logging.Logger.handle

    library = SimpleNamespace(__name__="logging", Logger=Logger)
    callbacks.TARGETS["logging"](library)
    logger, seen = Logger("test"), []
    handler = logging.Handler()
    handler.emit = seen.append
    logger.addHandler(handler)
    logger.warning("hello")
    assert recorded.names() == ["~callback.logging.Logger.handle"]
    assert (seen[0].funcName, seen[0].getMessage()) == (
        "test_a_log_line_is_a_callback_and_still_tells_its_own_place",
        "hello",
    )


def test_garbage_collections_are_recorded_with_their_generation(recorded):
    library = SimpleNamespace(callbacks=[])
    collector.TARGETS["gc"](library)
    (collection,) = library.callbacks
    collection("start", {"generation": 2})
    collection("stop", {"generation": 2, "collected": 5})
    (span,) = recorded.spans()
    assert recorded.names() == ["~gc"]
    assert int(span["arg"]) == 2


def test_sockets_are_recorded_by_family(recorded):
    import socket as real

    class socket(real.socket):
        def recv(self, size):
            return b"x" * size

    library = SimpleNamespace(socket=socket, getaddrinfo=lambda host: [host])
    network.TARGETS["socket"](library)
    with socket(real.AF_INET, real.SOCK_DGRAM) as internet, socket(real.AF_UNIX, real.SOCK_DGRAM) as local:
        assert internet.recv(10) == b"x" * 10
        assert local.recv(10) == b"x" * 10
    assert library.getaddrinfo("here") == ["here"]
    assert recorded.names() == ["~net.recv", "~net.getaddrinfo"]
    received = recorded.spans()[0]
    assert received["flags"] & NETWORK
    assert int(received["arg"]) == 10


def test_an_event_loops_wait_is_recorded(recorded):
    class DefaultSelector:
        def select(self, timeout=None):
            return []

    network.TARGETS["selectors"](SimpleNamespace(DefaultSelector=DefaultSelector))
    assert DefaultSelector().select(0) == []
    assert recorded.names() == ["~net.select"]


def test_compiling_a_graph_is_recorded_by_the_compilers_own_callbacks(recorded):
    starts, ends = [], []
    handler = SimpleNamespace(register_start_callback=starts.append, register_end_callback=ends.append)
    dynamo.TARGETS["torch._dynamo.callback"](SimpleNamespace(callback_handler=handler))
    for callback in (*starts, *ends):
        assert callback(SimpleNamespace(compile_id="0/1")) is None
    ends[0](SimpleNamespace(compile_id="0/2"))  # on a thread where none began
    assert recorded.names() == ["~dynamo.compile"]


def test_a_call_of_an_onnx_session_is_a_forward(recorded):
    class Session:
        def run(self, outputs, inputs):
            return [inputs["x"] + 1]

    class InferenceSession(Session):
        pass

    onnxruntime.TARGETS["onnxruntime.capi.onnxruntime_inference_collection"](SimpleNamespace(Session=Session))
    assert InferenceSession().run(None, {"x": 1}) == [2]
    assert recorded.names() == ["~onnxruntime.run"]
    assert ticks(recorded, Tick.FORWARD) == 1

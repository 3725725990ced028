"""Each seam, installed into a stand-in for its library: what is recorded, and that the library still is what it was."""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace
from typing import TypeVar

import pytest

from unstall.child.layout import ERROR, NETWORK, NOGRAD
from unstall.child.seams import autograd, callbacks, collectives, collector, cuda, loader, modules, network, optimizer
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

    def register_optimizer_step_pre_hook(self, hook):
        self.pre.append(hook)
        return SimpleNamespace(remove=lambda: self.pre.remove(hook))

    def register_optimizer_step_post_hook(self, hook):
        self.post.append(hook)
        return SimpleNamespace(remove=lambda: self.post.remove(hook))

    def step(self):
        for hook in self.pre:
            assert hook(self, (), {}) is None  # anything else would replace the arguments
        for hook in self.post:
            assert hook(self, (), {}) is None


def test_optimizer_steps_are_recorded_by_their_hooks(recorded):
    library = FakeOptimizer()
    optimizer.TARGETS["torch.optim.optimizer"](library)
    library.step()
    (span,) = recorded.spans()
    assert recorded.names() == ["~optimizer"]
    assert int(span["arg"]) == id(library)
    assert ticks(recorded, Tick.OPTIMIZER) == 1


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


def test_collectives_count_once_however_they_are_built_on_each_other(recorded):
    def broadcast(tensor, src):
        return tensor

    library = SimpleNamespace(broadcast=broadcast)
    library.broadcast_object_list = lambda objects, src: [library.broadcast(item, src) for item in objects]
    collectives.TARGETS["torch.distributed.distributed_c10d"](library)
    assert library.broadcast_object_list([1, 2], 0) == [1, 2]
    assert library.broadcast(1, 0) == 1
    assert recorded.names() == ["~comm.broadcast_object_list", "~comm.broadcast"]
    assert not hasattr(library, "all_reduce")


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

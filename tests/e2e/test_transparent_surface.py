"""What a program can see of itself is the same with unstall and without: tracebacks, objects, the process."""

from pathlib import Path

import pytest

import unstall

TRACEBACKS = """
    import logging
    import threading
    import traceback

    import gymnasium as gym
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset, IterableDataset


    class Block(nn.Module):
        def forward(self, x):
            if x.sum() > 2:
                raise ValueError("in forward")
            return x


    class Items(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            if index == 5:
                raise IndexError("in __getitem__") if index > 5 else KeyError("in __getitem__")
            return torch.ones(2)


    class Stream(IterableDataset):
        def __iter__(self):
            yield torch.ones(1)
            raise OSError("in a stream")


    class Env(gym.Env):
        observation_space = gym.spaces.Discrete(2)
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return 0, {}

        def step(self, action):
            raise ArithmeticError("in an environment")


    class Halve(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x / 2

        @staticmethod
        def backward(context, gradient):
            raise FloatingPointError("in backward")


    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(Block()))


    def forward():
        with torch.no_grad():
            model[0].weight.fill_(4)
        model(torch.ones(1, 2))


    def wrong_shape():
        model(torch.ones(1, 3))


    def wrong_call():
        model()


    def dataset():
        for _ in DataLoader(Items(), batch_size=2):
            pass


    def worker():
        for _ in DataLoader(Items(), batch_size=2, num_workers=1):
            pass


    def collate(items):
        raise TypeError("in collate")


    def collating():
        next(iter(DataLoader([1, 2], collate_fn=collate)))


    def stream():
        list(DataLoader(Stream()))


    def closure_of(optimizer):
        def closure():
            raise LookupError("in a closure")

        optimizer.step(closure)


    def closure():
        closure_of(torch.optim.LBFGS(model.parameters()))


    def closure_of_sgd():
        closure_of(torch.optim.SGD(model.parameters(), lr=0.1))


    def environment():
        env = Env()
        env.reset()
        env.step(0)


    def wrapped_environment():
        env = gym.wrappers.TimeLimit(Env(), 10)
        env.reset()
        env.step(0)


    def backward():
        Halve.apply(torch.ones(1, requires_grad=True)).sum().backward()


    def backward_twice():
        loss = (torch.ones(1, requires_grad=True) ** 2).sum()
        loss.backward()
        loss.backward()


    def hook():
        def raising(module, inputs):
            raise RuntimeError("in a hook")

        handle = model.register_forward_pre_hook(raising)
        try:
            model(torch.ones(1, 2))
        finally:
            handle.remove()


    def saving():
        torch.save(model, "nowhere/model.pt")


    def in_a_thread():
        caught = []

        def run():
            try:
                forward()
            except ValueError:
                caught.append(traceback.format_exc())

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        print(*caught)


    class Shout(logging.Handler):
        def emit(self, record):
            raise EOFError("in logging")


    def logged():
        logger = logging.getLogger("shout")
        logger.addHandler(Shout())
        logger.error("at line %d")


    for number in range(2):
        for case in (
            forward, wrong_shape, wrong_call, dataset, worker, collating, stream, closure, closure_of_sgd, environment,
            wrapped_environment, backward, backward_twice, hook, saving, in_a_thread, logged,
        ):
            try:
                case()
            except Exception:
                print(case.__name__, traceback.format_exc())
    forward()
"""


def test_tracebacks_are_the_same_line_for_line(workspace):
    workspace.write("program.py", TRACEBACKS)
    plain, watched = workspace.both("program.py")
    assert plain.status == 1
    assert plain.out.count("Traceback") >= 2 * 16
    assert str(Path(unstall.__file__).parent) not in plain.out
    assert watched.report["run"]["exit_code"] == 1


OBJECTS = """
    import copy
    import inspect
    import io
    import logging
    import pickle
    import typing

    import torch
    from torch import fx, nn
    from torch.utils.data import DataLoader, TensorDataset


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
            self.head = nn.Linear(8, 2)

        def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
            '''Twice applied.'''
            return self.head(self.body(x)) * scale


    class Shouting(Net):
        def __call__(self, *args, **kwargs):
            return super().__call__(*args, **kwargs) + 1


    torch.manual_seed(0)
    net, x = Net(), torch.ones(3, 4)


    def show(name, value):
        print(name, value)


    show("output", net(x, scale=2.0).tolist())
    show("by keyword", net(x=x).tolist())
    show("own __call__", Shouting()(x).tolist())
    show("super", nn.Module.__call__(net, x).tolist())
    show("is a module", [isinstance(m, nn.Module) for m in net.modules()])
    show("types", [type(m).__mro__ for m in net.modules()])
    for function in (
        net.forward, net.__call__, net, Net.forward, Net.__call__, nn.Module.__call__, DataLoader.__iter__, torch.save,
        torch.optim.SGD.step, torch.autograd.backward, torch.Tensor.backward, logging.Logger.handle,
    ):
        show("signature", inspect.signature(function))
        show("names", [getattr(function, name, None) for name in ("__name__", "__qualname__", "__module__", "__doc__")])
        show("bound", [inspect.ismethod(function), callable(function), inspect.isclass(function)])
    show("source", inspect.getsource(nn.Module.__call__))
    show("hints", typing.get_type_hints(Net.forward))
    show("docs", [inspect.getdoc(net.forward), inspect.getdoc(torch.save)])
    show("dir", sorted(dir(net)))
    show("instance", sorted(vars(net)))
    show("class", sorted(vars(nn.Module)))
    show("equal methods", [net.__call__ == net.__call__, net.forward == net.forward])

    copied = copy.deepcopy(net)
    show("deepcopy", [copied(x).tolist() == net(x).tolist(), list(copied.state_dict()) == list(net.state_dict())])
    file = io.BytesIO()
    torch.save(net, file)
    show("saved bytes", len(file.getvalue()))
    file.seek(0)
    show("torch.load", torch.load(file, weights_only=False)(x).tolist())
    show("pickled", len(pickle.dumps(net)))
    show("unpickled", pickle.loads(pickle.dumps(net))(x).tolist())
    show("pickled functions", [pickle.loads(pickle.dumps(f)) is not None for f in (torch.save, nn.Module.__call__)])
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(3):
        net(x).sum().backward()
        show("step", optimizer.step(lambda: net(x).sum()))
    show("optimizer", pickle.loads(pickle.dumps(optimizer)).state_dict()["state"][1])
    show("optimizer copied", len(copy.deepcopy(optimizer).state_dict()["state"]))
    loader = DataLoader(TensorDataset(x), batch_size=2)
    show("loader", [len(loader), [batch[0].shape for batch in pickle.loads(pickle.dumps(loader))]])
    show("loader iterates", [type(iter(loader)).__name__, type(loader.collate_fn).__name__])

    hooks = []
    handle = net.register_forward_hook(lambda module, inputs, output: hooks.append(type(module).__name__))
    net(x)
    handle.remove()
    show("hooks", hooks)
    show("scripted", torch.jit.script(net)(x).tolist())
    show("traced", torch.jit.trace(net, (x,)).graph)
    show("fx", fx.symbolic_trace(net).code)
    show("exported", torch.export.export(net, (x,)).graph)
    show("vmap", torch.func.vmap(lambda row: net(row))(x).tolist())
    show("functional", torch.func.functional_call(net, dict(net.named_parameters()), (x,)).tolist())
    show("jacobian", torch.func.jacrev(lambda row: net(row))(x[0]).tolist())
    show("replaced", [setattr(Net, "__call__", lambda self, x: "mine"), net(x)])
"""


@pytest.mark.slow
def test_objects_look_and_work_the_same(workspace):
    workspace.write("program.py", OBJECTS)
    plain, watched = workspace.both("program.py")
    assert plain.status == 0, plain.err
    assert watched.status == 0


PROCESS = """
    import gc
    import locale
    import os
    import random
    import resource
    import signal
    import sys
    import threading
    import time
    import warnings

    import numpy
    import torch

    torch.manual_seed(0)
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(120):
        model(torch.randn(64, 16)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.01)
        if step == 50:
            warnings.warn("only once", stacklevel=1)


    def show(name, value):
        print(name, value)


    show("file", __file__)
    show("name", [__name__, __spec__, __package__, type(__loader__).__name__])
    show("argv", [sys.argv, sys.orig_argv[1:]])
    show("path", sys.path)
    show("interpreter", [sys.executable, sys.prefix, sys.flags, sys.warnoptions, sys._xoptions])
    show("cwd", os.getcwd())
    show("threads", [torch.get_num_threads(), torch.get_num_interop_threads()])
    show("python threads", [thread.name for thread in threading.enumerate()])
    show("all threads", len(os.listdir("/proc/self/task")))
    show("warnings", warnings.filters)
    for number in signal.valid_signals():
        show(number, signal.getsignal(number))
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    theirs = ~(3 << 31)  # 32 and 33 are the C library's own: posix_spawn sets them
    show("signal masks", [hex(int(status[name], 16) & theirs) for name in ("SigBlk", "SigIgn", "SigCgt")])
    show("limits", [resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT_")])
    show("umask, nice", [os.umask(0), os.nice(0)])
    show("cores", os.sched_getaffinity(0))
    files = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}
    show("files", sorted(file for file in files if not file.startswith("/proc/") and "std" not in file))
    show("streams", [(f.isatty(), f.encoding, f.errors, f.line_buffering) for f in (sys.stdin, sys.stdout, sys.stderr)])
    show("locale", locale.getlocale())
    show("collector", [gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.get_freeze_count()])
    show("hooks", [sys.gettrace(), sys.getprofile(), sys.excepthook, sys.displayhook, threading.excepthook])
    show("recursion", [sys.getrecursionlimit(), sys.getswitchinterval()])
    show("environment", sorted(name for name in os.environ if not name.startswith(("UNSTALL_", "PYTHONPATH"))))
    show("seeded", [random.seed(1), random.random(), numpy.random.RandomState(1).rand(), torch.rand(1).item()])
    show("defaults", [torch.get_default_dtype(), torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled()])
    show("modules", sorted(n for n in sys.modules if n in ("program", "usercustomize", "_recorder")))
    show("main", sorted(vars()))
"""


def test_the_process_looks_the_same(workspace):
    workspace.write("program.py", PROCESS)
    plain, watched = workspace.both("program.py", "--lr", "0.1", "an argument")
    assert plain.status == 0, plain.err
    assert watched.steps >= 1
    assert "only once" in watched.err

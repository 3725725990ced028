"""Objects of the libraries that unstall hooks into: what they look like, what they compute, and when they are gone."""

from __future__ import annotations

from .case import Case, programs

_TORCH = """
import copy, functools, gc, inspect, io, pickle, random, re, sys, types, weakref
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


def digest(*tensors):
    return [np.asarray(t.detach()).tobytes().hex()[:32] for t in tensors]


def make(width=8):
    return nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))


def train(model, optimizer=None, steps=30, data=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(steps):
        x = torch.randn(4, 8) if data is None else next(data)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


"""

LOOKS = {
    "Module.__call__": "print(inspect.signature(nn.Module.__call__), nn.Module.__call__.__name__, nn.Module.__call__.__qualname__, nn.Module.__call__.__module__)",
    "Optimizer.step": "print([(o.__name__, inspect.signature(o.step), o.step.__qualname__) for o in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)])",
    "Tensor.backward": "print(inspect.signature(torch.Tensor.backward), torch.Tensor.backward.__doc__[:50], torch.Tensor.backward.__qualname__)",
    "autograd": "print(inspect.signature(torch.autograd.backward), inspect.signature(torch.autograd.grad))",
    "DataLoader.__iter__": "print(inspect.signature(DataLoader.__iter__), inspect.isfunction(DataLoader.__iter__), DataLoader.__iter__.__qualname__)",
    "functions": "print([inspect.isfunction(f) for f in (nn.Module.__call__, torch.optim.SGD.step, torch.Tensor.backward, DataLoader.__iter__, torch.save, torch.load)])",
    "routines": "print([inspect.isroutine(f) for f in (nn.Module.__call__, torch.optim.SGD.step, torch.save)], [callable(f) for f in (torch.save, torch.load)])",
    "source files": "print([inspect.getsourcefile(f).rsplit('site-packages')[-1] for f in (nn.Module.__call__, torch.save, torch.load, torch.optim.SGD.step, torch.autograd.backward, DataLoader.__iter__)])",
    "source": "print([len(inspect.getsource(f)) for f in (torch.save, torch.Tensor.backward, torch.autograd.backward, DataLoader.__next__ if hasattr(DataLoader, '__next__') else DataLoader.__iter__)])",
    "documentation": "print([inspect.getdoc(f)[:30] for f in (torch.save, torch.load, torch.Tensor.backward, torch.autograd.backward)])",
    "classes": "print([c.__mro__ for c in (DataLoader, torch.optim.SGD, nn.Linear)], sorted(vars(nn.Linear)))",
    "instances": "m = make()\ntrain(m)\nprint(sorted(vars(m)), sorted(vars(m[0])), m)",
    "vars of an optimizer": "m = make()\no = torch.optim.Adam(m.parameters())\ntrain(m, o)\nprint(sorted(vars(o)), o, sorted(o.defaults))",
    "vars of a loader": "l = DataLoader(TensorDataset(torch.ones(4)))\nlist(l)\nprint(sorted(vars(l)), type(iter(l)).__mro__)",
    "hooks": "m = make()\ntrain(m)\nprint(m._forward_hooks, m._forward_pre_hooks, m._backward_hooks, nn.modules.module._global_forward_hooks, nn.modules.module._global_backward_hooks)",
    "types of tensors": "m = make()\ny = m(torch.ones(1, 8))\nprint(type(y), y.grad_fn, y.requires_grad, type(m[0].weight))",
    "graph": "m = make()\nl = m(torch.ones(1, 8)).sum()\nprint(l.grad_fn.next_functions, l.grad_fn.metadata)",
    "modules list": "print(torch.save.__module__, torch.load.__qualname__, torch.utils.data.DataLoader is DataLoader, sys.modules['torch.optim'].SGD is torch.optim.SGD)",
    "settings": "print(torch.get_num_threads(), torch.is_grad_enabled(), torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled(), torch.backends.mkldnn.enabled, torch.is_inference_mode_enabled())",
    "modes": "train(make())\nprint(torch.utils._python_dispatch._get_current_dispatch_mode_stack(), torch.overrides._get_current_function_mode_stack())",
    "profiler state": "train(make())\nprint(torch.autograd.profiler._is_profiler_enabled, torch._C._autograd._profiler_enabled())",
    "where attributes are kept": "import gc, gymnasium\nclass E(gymnasium.Env):\n    def __init__(self):\n        self.place, self.seen = 0.0, []\n    def step(self, action):\n        self.place += 0.1\n        self.seen.append(self.place)\n        return self.place, 0.0, False, False, {}\n    def reset(self, *, seed=None, options=None):\n        return 0.0, {}\nclass Keeper:\n    def __init__(self):\n        self.losses, self.count = [], 0\nenv, keeper, m = E(), Keeper(), make()\nfor _ in range(400):\n    env.step(0)\n    keeper.losses += [train(m, steps=1)]\nprint(*(sorted(type(part).__name__ for part in gc.get_referents(each)) for each in (env, keeper)))",
    "names of wrapped functions": "print(hasattr(nn.Module.__call__, '__wrapped__'), hasattr(torch.save, '__wrapped__'), torch.optim.SGD.step.__name__)",
}
RESULTS = {
    "losses": "print(train(make()))",
    "weights": "m = make()\ntrain(m)\nprint(digest(*m.parameters()))",
    "random numbers after it": "train(make())\nprint(torch.rand(2), random.Random(0).random(), np.random.RandomState(0).rand())",
    "state of the generators": "random.seed(1)\nnp.random.seed(1)\ntrain(make())\nprint(torch.get_rng_state().sum(), hash(random.getstate()[1]), np.random.get_state()[1].sum())",
    "numbers drawn in extra_repr": "class M(nn.Linear):\n    def extra_repr(self):\n        return str(torch.rand(1))\nm = M(8, 1)\nprint(train(m), torch.rand(1))",
    "a module that counts questions": "asked = []\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.l = nn.Linear(8, 1)\n    def forward(self, x):\n        return self.l(x)\n    def parameters(self, recurse=True):\n        asked.append('parameters')\n        return super().parameters(recurse)\n    def named_parameters(self, *a, **k):\n        asked.append('named')\n        return super().named_parameters(*a, **k)\n    def modules(self):\n        asked.append('modules')\n        return super().modules()\n    def state_dict(self, *a, **k):\n        asked.append('state')\n        return super().state_dict(*a, **k)\n    def __repr__(self):\n        asked.append('repr')\n        return 'M'\nm = M()\ntrain(m)\nprint(asked)",
    "a module whose attributes count": "asked = []\nclass M(nn.Linear):\n    def __getattr__(self, name):\n        asked.append(name)\n        return super().__getattr__(name)\nm = M(8, 1)\ntrain(m, steps=5)\nprint(asked)",
    "batches whose shape is asked": "asked = []\nclass B(torch.Tensor):\n    @property\n    def shape(self):\n        asked.append('shape')\n        return super().shape\nx = torch.ones(4, 8).as_subclass(B)\nm = nn.Linear(8, 1)\ntrain(m, data=iter([x] * 30))\nprint(len(asked))",
    "function modes": "calls = []\nclass Mode(torch.overrides.TorchFunctionMode):\n    def __torch_function__(self, f, types, args=(), kwargs=None):\n        calls.append(getattr(f, '__name__', '?'))\n        return f(*args, **(kwargs or {}))\nm = make()\nwith Mode():\n    train(m, steps=12)\nprint(len(calls), sorted(set(calls)))",
    "dispatch modes": "from torch.utils._python_dispatch import TorchDispatchMode\ncalls = []\nclass Mode(TorchDispatchMode):\n    def __torch_dispatch__(self, f, types, args=(), kwargs=None):\n        calls.append(str(f))\n        return f(*args, **(kwargs or {}))\nm = make()\nwith Mode():\n    train(m, steps=12)\nprint(len(calls), sorted(set(calls)))",
    "its own FLOP counter": "from torch.utils.flop_counter import FlopCounterMode\nm = make()\nwith FlopCounterMode(display=False) as counter:\n    train(m, steps=20)\nprint(counter.get_total_flops())\nprint(torch.utils._python_dispatch._get_current_dispatch_mode_stack())",
    "its own FLOP counter for a step each": "from torch.utils.flop_counter import FlopCounterMode\nm = make()\nn = []\nfor _ in range(30):\n    with FlopCounterMode(display=False) as counter:\n        train(m, steps=1)\n    n.append(counter.get_total_flops())\nprint(n)",
    "its own profiler": "from torch.profiler import profile\nm = make()\nwith profile() as p:\n    train(m, steps=5)\nprint(sorted({e.key for e in p.key_averages() if e.key.startswith('aten')}))",
    "jit trace": "m = make().eval()\nt = torch.jit.trace(m, torch.ones(1, 8))\nprint(t.graph, digest(t(torch.ones(1, 8))))",
    "jit trace of something that loops": "def f(x):\n    for n in range(x.shape[0]):\n        x = x + n\n    return x\nprint(torch.jit.trace(f, torch.ones(3)).graph)",
    "jit script": "m = torch.jit.script(nn.Sequential(nn.Linear(8, 1)))\nprint(train(m))",
    "fx": "g = torch.fx.symbolic_trace(make())\nprint(g.graph, digest(*g.parameters())[0])",
    "export": "p = torch.export.export(nn.Linear(8, 1), (torch.ones(1, 8),))\nprint(p.graph)",
    "vmap": "print(torch.vmap(nn.functional.softmax)(torch.arange(6.0).reshape(2, 3)))",
    "functional grad": "m = nn.Linear(2, 1)\np = dict(m.named_parameters())\nprint(torch.func.grad(lambda p: torch.func.functional_call(m, p, torch.ones(1, 2)).sum())(p))",
    "double backward": "x = torch.ones(2, requires_grad=True)\ng, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)\ng.sum().backward()\nprint(x.grad)",
    "accumulated gradients": "m = make()\nfor _ in range(12):\n    m(torch.randn(2, 8)).sum().backward()\nprint(digest(*(p.grad for p in m.parameters())))",
    "LBFGS": "m = nn.Linear(8, 1)\no = torch.optim.LBFGS(m.parameters(), max_iter=3)\nx = torch.randn(16, 8)\ndef closure():\n    o.zero_grad()\n    l = (m(x) - 1).square().mean()\n    l.backward()\n    return l\nfor _ in range(12):\n    print(o.step(closure).item())",
    "closure's answer": "m = nn.Linear(8, 1)\no = torch.optim.SGD(m.parameters(), lr=0.1)\nprint(o.step(lambda: 5), o.step())",
    "schedulers": "m = make()\no = torch.optim.SGD(m.parameters(), lr=1)\ns = torch.optim.lr_scheduler.StepLR(o, 3)\nfor _ in range(12):\n    train(m, o, steps=1)\n    s.step()\nprint(s.get_last_lr())",
    "a scheduler before the optimizer": "import warnings\nm = make()\no = torch.optim.SGD(m.parameters(), lr=1)\ns = torch.optim.lr_scheduler.StepLR(o, 3)\ns.step()\no.step()\ns.step()\nprint('warned?')",
    "hooks of an optimizer": "m = make()\no = torch.optim.SGD(m.parameters(), lr=0.1)\nheard = []\no.register_step_pre_hook(lambda *w: heard.append('pre'))\no.register_step_post_hook(lambda *w: heard.append('post'))\ntrain(m, o, steps=4)\nprint(heard)",
    "hooks of modules": "m = make()\nheard = []\nfor n, s in m.named_modules():\n    s.register_forward_hook(lambda s, i, o, n=n: heard.append(n))\n    s.register_full_backward_hook(lambda s, i, o, n=n: heard.append('b' + n))\ntrain(m, steps=2)\nprint(heard)",
    "anomaly detection": "with torch.autograd.detect_anomaly(check_nan=True):\n    try:\n        x = torch.tensor(-1.0, requires_grad=True)\n        x.sqrt().backward()\n    except RuntimeError as error:\n        print(error)",
    "checkpointing": "from torch.utils.checkpoint import checkpoint\nm = make()\nfor _ in range(12):\n    checkpoint(m, torch.randn(2, 8), use_reentrant=False).sum().backward()\nprint(digest(m[0].weight.grad))",
    "autocast": "m = make()\nwith torch.autocast('cpu', dtype=torch.bfloat16):\n    print(train(m, steps=12), m(torch.ones(1, 8)).dtype)",
    "compiled": "m = torch.compile(make(), backend='eager')\nprint(train(m, steps=12), torch._dynamo.utils.counters['stats'])",
    "graph breaks": "import torch._dynamo as d\ndef f(x):\n    return x.sin() + 1\nprint(d.explain(f)(torch.ones(2)).graph_break_count)",
}
# The pickle of a tensor holds addresses, of more or fewer digits.
CARRIED = {
    "pickled module": "m = make()\ntrain(m)\nprint(pickle.dumps(m) == pickle.dumps(pickle.loads(pickle.dumps(m))), len(re.sub(rb'[0-9]{6,}', b'', pickle.dumps(m))))",
    "pickled functions": "print(pickle.loads(pickle.dumps(torch.save)) is torch.save, pickle.loads(pickle.dumps(nn.Module.__call__)) is nn.Module.__call__, pickle.dumps(torch.optim.SGD.step))",
    "copied optimizer": "m = make()\no = torch.optim.Adam(m.parameters())\ntrain(m, o)\nprint(sorted(copy.deepcopy(o).state_dict()), pickle.dumps(o)[:2])",
    "copied loader": "l = DataLoader(TensorDataset(torch.arange(4.0)))\nlist(l)\nprint(list(copy.copy(l)), list(pickle.loads(pickle.dumps(l))), sorted(vars(l)), sorted(vars(pickle.loads(pickle.dumps(l)))))",
    "saved": "b = io.BytesIO()\ntorch.save(make().state_dict(), b)\nprint(len(b.getvalue()))",
    "saved to a file": "torch.save(make(), 'm.pt')\nprint(torch.load('m.pt', weights_only=False)(torch.ones(1, 8)).shape)",
    "subclassed loader": "class L(DataLoader):\n    def __iter__(self):\n        for batch in super().__iter__():\n            yield batch * 2 if isinstance(batch, torch.Tensor) else batch\nprint(list(L([1, 2, 3])))",
    "subclassed optimizer": "class O(torch.optim.SGD):\n    def step(self, closure=None):\n        return ('mine', super().step(closure))\nm = make()\nprint(O(m.parameters(), lr=0.1).step())",
    "an optimizer of its own": "class O(torch.optim.Optimizer):\n    def __init__(self, p):\n        super().__init__(p, {})\n    def step(self):\n        for g in self.param_groups:\n            for p in g['params']:\n                p.data -= p.grad\n        return 'done'\nm = make()\no = O(m.parameters())\nprint(train(m, o), o.step())",
    "patched step": "m = make()\no = torch.optim.SGD(m.parameters(), lr=0.1)\nreal = o.step\no.step = types.MethodType(lambda self: ('patched', real()), o)\nprint(o.step(), train(m, o, steps=3))",
    "patched class": "real = nn.Module.__call__\ncalls = []\ndef call(self, *a, **k):\n    calls.append(type(self).__name__)\n    return real(self, *a, **k)\nnn.Module.__call__ = call\nmake()(torch.ones(1, 8))\nnn.Module.__call__ = real\nprint(calls, nn.Module.__call__ is real)",
    "partial methods": "print(functools.partial(nn.Module.__call__, nn.Linear(2, 1))(torch.ones(1, 2)).shape, functools.wraps(torch.save)(lambda: 0).__name__)",
    "bound methods": "m = nn.Linear(2, 1)\nprint(types.MethodType(nn.Module.__call__, m)(torch.ones(1, 2)).shape, nn.Linear.__call__ is nn.Module.__call__, m.__call__.__self__ is m)",
    "equality": "o = torch.optim.SGD(make().parameters(), lr=1)\nprint(o.step == o.step, hash(o.step) == hash(o.step), torch.save == torch.save)",
    "calls by keyword": "m = make()\nl = m(input=torch.ones(1, 8)).sum()\nl.backward(retain_graph=True)\nl.backward(gradient=None, inputs=list(m.parameters()))\nprint(digest(m[0].weight.grad))",
    "wrong calls": "m = make()\nfor call in (lambda: m(), lambda: m(1, 2, 3), lambda: m(torch.ones(1, 8)).sum().backward(1, 2, 3, 4, 5), lambda: torch.save(), lambda: torch.optim.SGD.step()):\n    try:\n        call()\n    except Exception as error:\n        print(type(error).__name__, error)",
}
LIVES = {
    "a model that is deleted": "m = make()\ntrain(m)\nr = weakref.ref(m)\ndel m\nprint(r())",
    "models in turn": "refs = []\nfor _ in range(6):\n    m = make()\n    train(m, steps=12)\n    refs.append(weakref.ref(m))\n    del m\nprint([r() is None for r in refs])",
    "an optimizer that is deleted": "m = make()\no = torch.optim.Adam(m.parameters())\ntrain(m, o)\nr = weakref.ref(o)\ndel o\nprint(r())",
    "a loader that is deleted": "l = DataLoader(TensorDataset(torch.ones(8)))\nfor _ in l:\n    pass\nr = weakref.ref(l)\ndel l, _\nprint(r())",
    "an iterator that is deleted": "l = DataLoader(TensorDataset(torch.ones(8)))\ni = iter(l)\nnext(i)\nr = weakref.ref(i)\ndel i\nprint(r())",
    "batches": "refs = []\nclass D(Dataset):\n    def __len__(self):\n        return 20\n    def __getitem__(self, n):\n        return torch.ones(8) * n\nm = make()\nfor x in DataLoader(D(), batch_size=1):\n    m(x).sum().backward()\n    refs.append(weakref.ref(x))\ndel x\nprint([r() is None for r in refs])",
    "outputs": "m = make()\ny = m(torch.ones(1, 8))\nr = weakref.ref(y)\ndel y\nprint(r())",
    "gradients": "m = make()\ntrain(m)\nr = weakref.ref(m[0].weight.grad)\nm.zero_grad(set_to_none=True)\nprint(r())",
    "counted references": "m = make()\ntrain(m)\nprint(sys.getrefcount(m), len(gc.get_referrers(m)), sys.getrefcount(m[0].weight))",
    "parameters that are swapped": "m = make()\ntrain(m)\nr = weakref.ref(m[0].weight)\nm[0].weight = nn.Parameter(torch.zeros(16, 8))\nprint(r() is None, train(m))",
    "live modules": "m = make()\ntrain(m)\ndel m\ngc.collect()\nprint(sum(isinstance(o, nn.Module) for o in gc.get_objects()))",
    "memory of models in turn": "import resource\nfor _ in range(6):\n    m = nn.Sequential(nn.Linear(8, 500_000), nn.Linear(500_000, 1))\n    train(m, steps=2)\n    m = None\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1_200_000)",
    "an environment": "import gymnasium as gym\nclass E(gym.Env):\n    observation_space = gym.spaces.Discrete(2)\n    action_space = gym.spaces.Discrete(2)\n    def reset(self, *, seed=None, options=None):\n        return 0, {}\n    def step(self, a):\n        return 0, 1.0, False, False, {}\ne = E()\ne.reset()\nfor _ in range(50):\n    e.step(0)\nr = weakref.ref(e)\ndel e\nprint(r())",
}
LOADERS = {
    "order by seed": "g = torch.Generator().manual_seed(3)\nprint([int(x) for x in DataLoader(range(8), shuffle=True, generator=g)])",
    "order of the default generator": "print([int(x) for x in DataLoader(range(8), shuffle=True)], torch.rand(1))",
    "seeds of workers": "class D(Dataset):\n    def __len__(self):\n        return 8\n    def __getitem__(self, n):\n        return torch.initial_seed() % 1000, torch.utils.data.get_worker_info().id\nprint([tuple(map(int, t)) for t in DataLoader(D(), batch_size=None, num_workers=2)])",
    "random numbers of workers": "class D(Dataset):\n    def __len__(self):\n        return 6\n    def __getitem__(self, n):\n        return torch.rand(1), random.random()\nprint([(a.item(), b) for a, b in DataLoader(D(), batch_size=None, num_workers=2)])",
    "persistent workers": "l = DataLoader(range(6), num_workers=1, persistent_workers=True)\nprint([[int(x) for x in l] for _ in range(3)])",
    "a worker's own initialisation": "def begin(n):\n    torch.manual_seed(n)\nclass D(Dataset):\n    def __len__(self):\n        return 4\n    def __getitem__(self, n):\n        return torch.rand(1)\nprint([x.item() for x in DataLoader(D(), num_workers=2, worker_init_fn=begin)])",
    "an iterable": "class D(IterableDataset):\n    def __iter__(self):\n        yield from range(5)\nprint([int(x) for x in DataLoader(D())])",
    "a loader that is left early": "l = DataLoader(range(100), num_workers=2)\nfor n, x in enumerate(l):\n    if n == 3:\n        break\nprint(int(x))",
    "two at once": "a, b = DataLoader(range(4)), DataLoader(range(4, 8))\nprint([(int(x), int(y)) for x, y in zip(a, b)])",
    "a loader in a loader": "class D(Dataset):\n    def __len__(self):\n        return 3\n    def __getitem__(self, n):\n        return sum(int(x) for x in DataLoader(range(n + 1)))\nprint([int(x) for x in DataLoader(D())])",
    "len and more": "l = DataLoader(range(10), batch_size=3)\nprint(len(l), l.batch_sampler.batch_size, list(l.batch_sampler), l.multiprocessing_context)",
    "an error in a worker": "class D(Dataset):\n    def __len__(self):\n        return 4\n    def __getitem__(self, n):\n        raise KeyError(n)\ntry:\n    list(DataLoader(D(), num_workers=1))\nexcept KeyError as error:\n    print(str(error)[:80])",
    "dicts and tuples": "class D(Dataset):\n    def __len__(self):\n        return 2\n    def __getitem__(self, n):\n        return {'a': torch.ones(1), 'b': (n, 'text')}\nprint(list(DataLoader(D(), batch_size=2)))",
    "a collate of its own": "print(list(DataLoader(range(4), batch_size=2, collate_fn=tuple)))",
    "threads of its own": "import threading, queue\nq = queue.Queue(2)\nthreading.Thread(target=lambda: [q.put(torch.ones(4, 8) * n) for n in range(30)], daemon=True).start()\nprint(train(make(), data=iter(q.get, None)))",
}

_GROUP = """
import torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
"""
COLLECTIVES = {
    name: _GROUP + source + "\ndist.destroy_process_group()"
    for name, source in {
        "their results": "x = torch.ones(4)\ny = [torch.zeros(4)]\nprint(dist.all_reduce(x), dist.all_gather(y, x), y, dist.barrier(), dist.get_rank())\nw = dist.all_reduce(x, async_op=True)\nprint(type(w), w.wait(), w.is_completed())",
        "how they look": "print(inspect.signature(dist.all_reduce), inspect.isfunction(dist.all_gather), dist.barrier.__name__, dist.all_reduce is dist.distributed_c10d.all_reduce)",
        "wrong calls": "for call in (lambda: dist.all_reduce(), lambda: dist.all_reduce(3), lambda: dist.all_reduce(torch.ones(2), group='none'), lambda: dist.all_reduce(torch.ones(2), async_op=True).wait(1, 2, 3)):\n    try:\n        call()\n    except Exception as error:\n        print(type(error).__name__, str(error)[:60])",
        "modes around them": "calls = []\nclass Mode(torch.overrides.TorchFunctionMode):\n    def __torch_function__(self, f, types, args=(), kwargs=None):\n        calls.append(getattr(f, '__name__', '?'))\n        return f(*args, **(kwargs or {}))\nwith Mode():\n    dist.all_reduce(torch.ones(2))\n    dist.all_gather([torch.ones(2)], torch.ones(2))\nprint(calls)",
        "a subclass of tensors": "asked = []\nclass T(torch.Tensor):\n    @classmethod\n    def __torch_function__(cls, f, types, args=(), kwargs=None):\n        asked.append(getattr(f, '__name__', '?'))\n        return super().__torch_function__(f, types, args, kwargs or {})\ndist.all_reduce(torch.ones(2).as_subclass(T))\nprint(asked)",
        "a work in Python": "class W(dist.Work):\n    def __init__(self):\n        super().__init__()\n    def wait(self, timeout=None):\n        return 'mine'\nprint(W().wait())",
        "a work that is deleted": "x = torch.ones(2)\nw = dist.all_reduce(x, async_op=True)\nw.wait()\nr = weakref.ref(x)\ndel w, x\nprint(r())",
        "compiled": "from torch._dynamo.testing import CompileCounter\ncounter = CompileCounter()\ndef f(x):\n    dist.all_reduce(x)\n    y = torch.empty(4)\n    dist.all_gather_into_tensor(y, x)\n    work = dist.all_reduce(y, async_op=True)\n    work.wait()\n    return y * 3\nprint(torch.compile(f, backend=counter)(torch.ones(4)), counter.frame_count, counter.op_count)",
        "compiled functional ones": "import torch.distributed._functional_collectives as functional\nfrom torch._dynamo.testing import CompileCounter\ncounter = CompileCounter()\ndef f(x):\n    return functional.all_gather_tensor(functional.all_reduce(x * 2, 'sum', dist.group.WORLD) + 1, 0, dist.group.WORLD) * 3\nprint(torch.compile(f, backend=counter, fullgraph=True)(torch.ones(4)), counter.frame_count, counter.op_count)\nx = functional.all_reduce(torch.ones(4), 'sum', dist.group.WORLD)\nprint(type(x), torch.compile(lambda x: x * 2, backend=counter)(x), x + 1)",
    }.items()
}

_SHELL = {"its own profiler": "2>/dev/null"}
"""torch's profiler writes the time of day to stderr."""

CASES: list[Case] = [
    case
    for prefix, sources in (("looks", LOOKS), ("results", RESULTS), ("carried", CARRIED), ("lives", LIVES), ("loaders", LOADERS), ("collectives", COLLECTIVES))
    for name, source in sources.items()
    for case in programs(
        prefix, {name: _TORCH + source + "\n"}, needs=("torch",), heavy=True, shell=_SHELL.get(name, "")
    )
]  # fmt: skip

"""A program whose backward runs in a thread of torch's own, without a Python frame below, as on every GPU.

The device is one that torch lets Python code stand for.
"""

from __future__ import annotations

import pytest

PROGRAM = """
    import os
    import threading

    import torch
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    _setup_privateuseone_for_python_backend("attic")


    class Stored(torch.Tensor):
        @staticmethod
        def __new__(cls, kept):
            stored = torch._C._acc.create_empty_tensor(kept.size(), kept.dtype)
            stored.__class__ = Stored
            return stored

        def __init__(self, kept):
            self.kept = kept


    def on_attic(name, function):
        def computed(*args, **kwargs):
            return Stored(function(*[arg.kept if isinstance(arg, Stored) else arg for arg in args]).clone())

        torch.library.impl(name, "privateuseone")(computed)


    on_attic("aten::mul.Tensor", torch.mul)
    on_attic("aten::sum", torch.sum)
    on_attic("aten::expand", torch.Tensor.expand)
    on_attic("aten::ones_like", torch.ones_like)
    on_attic("aten::detach", torch.Tensor.detach)


    class Threads(torch.autograd.Function):
        seen = set()

        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            Threads.seen.add(threading.current_thread() is threading.main_thread())
            return gradient


    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.stored = Stored(torch.ones(3)).requires_grad_()

        def forward(self, x):
            return Threads.apply(self.stored * x)


    class Descent(torch.optim.Optimizer):
        def __init__(self, tensors):
            super().__init__(tensors, {})

        def step(self):
            for group in self.param_groups:
                for tensor in group["params"]:
                    tensor.kept -= 0.01 * tensor.grad.kept
                    tensor.grad = None


    model = Scale()
    optimizer = Descent([model.stored])
    for step in range(40):
        loss = model(Stored(torch.arange(3.0) + step)).sum()
        loss.backward()
        optimizer.step()
    print(Threads.seen, model.stored.kept.tolist(), flush=True)
    os._exit(0)  # torch's thread of such a device may abort a program that ends otherwise, with unstall or without
"""


@pytest.mark.slow
def test_gradients_computed_in_a_thread_of_torchs_are_no_trouble(workspace):
    registration = pytest.importorskip("torch.utils.backend_registration")
    if not hasattr(registration, "_setup_privateuseone_for_python_backend"):
        pytest.skip("this torch lets no Python code stand for a device")
    workspace.write("program.py", PROGRAM)
    plain, watched = workspace.both("program.py")
    assert plain.status == 0, plain.err
    assert "{False}" in plain.out, "backward ran in the main thread: this checks nothing"
    assert watched.report["run"]["steps"] > 0

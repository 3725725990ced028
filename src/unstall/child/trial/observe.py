"""Write down what the first steps compute: each loss, each output of a model, and its weights now and then.

``observed.bin`` is a sequence of pickled tuples (what, step, dtype, shape, digest, values): the digest is of all the
bytes, the values are raw bytes of at most some thousand elements, evenly chosen, so that a difference can be judged.
``plan["whole"]``: of a whole run: what goes into the models as well, the weights at more steps and with the optimizers'
state at the end, for which models and optimizers are kept alive. ``plan["gradients"]``: what optimizers are given, too.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import weakref
from typing import Any

from unstall.child import trial
from unstall.child.trial import clock as clocks
from unstall.child.trial.tensors import tensors

WEIGHT_STEPS = (1, 2, 4, 8)
"""The weights are written down after so many steps, before the first and after the last: early ones tell most."""

_MAX_VALUES = 4096
_MAX_RECORDS = 4000
_MAX_ALIVE = 16  # models, and optimizers


class Observer:
    """Writes tensors down in the main process until the clock stops it."""

    def __init__(self, folder: str, *, whole: bool = False):
        self.path = os.path.join(folder, "observed.bin")
        self.whole = whole
        self.alive: list[Any] = []
        self.optimizers: list[Any] = []
        self.file: Any = None
        self.pid = os.getpid()
        self.roots: dict[int, Any] = {}
        self.records = 0
        self.busy = False

    def step(self) -> int:
        """Steps that have ended so far."""
        return len(clocks.current.times) if clocks.current is not None else 0

    def record(self, what: str, value: Any) -> None:
        """Write down every tensor in a value, in order."""
        if os.getpid() != self.pid or self.records >= _MAX_RECORDS or self.busy or trial.is_unseen():
            return
        self.busy = True  # what is computed here must not be recorded
        try:
            if not self._open():
                return
            for number, tensor in enumerate(tensors(value)):
                self.records += 1
                pickle.dump((f"{what}.{number}", self.step(), *facts(tensor)), self.file)
        finally:
            self.busy = False

    def _open(self) -> bool:
        """Open the file at the first record: of all the program's processes, the one that records first has it."""
        if self.file is None:
            try:
                self.file = open(self.path, "xb")  # noqa: SIM115  open until the process ends
            except OSError:
                self.pid = -1
        return self.file is not None

    def root(self, module: Any) -> None:
        """Write the weights of a model down when it is first seen, and remember it."""
        if id(module) not in self.roots and not trial.is_unseen():
            self.roots[id(module)] = weakref.ref(module)
            if self.whole and len(self.roots) <= _MAX_ALIVE:
                self.alive.append(module)
            self.record_weights(len(self.roots) - 1, module)

    def after_step(self) -> None:
        """Write the weights down if it is time."""
        step = self.step()
        if step in WEIGHT_STEPS or (self.whole and step & (step - 1) == 0):
            self.record_all_weights()

    def finish(self) -> None:
        """Write the weights down for the last time."""
        self.record_all_weights()
        self.records = 0
        for number, optimizer in enumerate(self.optimizers):
            for index, state in enumerate(optimizer.state.values()):
                for name, value in sorted(state.items(), key=str):
                    self.record(f"state.{number}.{index}.{name}", value)
        if self.file is not None:
            self.file.flush()

    def record_all_weights(self) -> None:
        """Write the parameters and buffers of all models down."""
        for number, reference in enumerate(self.roots.values()):
            module = reference()
            if module is not None:
                self.record_weights(number, module)

    def record_weights(self, number: int, module: Any) -> None:
        """Write the parameters and buffers of a model down; however many, they do not use up the room for outputs."""
        records = self.records
        self.records = 0
        for name, tensor in list(module.named_parameters()) + list(module.named_buffers()):
            self.record(f"weights.{number}.{name}", tensor)
        self.records = records


def facts(tensor: Any) -> tuple[str, tuple[int, ...], bytes, bytes]:
    """dtype, shape, digest of all bytes, and raw values (of half precision: as float32, which is exact)."""
    torch: Any = sys.modules["torch"]
    with torch.inference_mode(False), torch.no_grad():
        dense = tensor.detach()
        if dense.is_sparse:
            dense = dense.to_dense()
        dense = dense.cpu()
        name = str(dense.dtype).removeprefix("torch.")
        if name in ("bfloat16", "float16"):
            dense = dense.float()
        flat = dense.contiguous().reshape(-1)
        digest = hashlib.blake2b(_bytes(torch, flat), digest_size=16).digest()
        stride = max(1, -(-flat.numel() // _MAX_VALUES))
        return name, tuple(tensor.shape), digest, _bytes(torch, flat[::stride].contiguous())


def _bytes(torch: Any, flat: Any) -> bytes:
    """The bytes of a contiguous tensor of one dimension."""
    if not flat.numel():
        return b""
    flat = flat.as_strided(flat.shape, (1,))  # a single element counts as contiguous whatever its stride is
    return bytes(flat.view(torch.uint8).numpy())


def targets(plan: dict[str, Any], folder: str) -> list[tuple[str, Any]]:
    """Hooks at the model's calls and at backward; the weights at some of the clock's steps, and when it stops."""
    if trial.is_helper():
        return []
    observer = Observer(folder, whole=bool(plan.get("whole")))
    gradients = bool(plan.get("gradients"))

    def add_end(module: Any) -> None:
        if clocks.current is not None and observer.finish not in clocks.current.on_end:
            clocks.current.on_step.append(observer.after_step)
            clocks.current.on_end.append(observer.finish)

    return [
        ("torch.nn.modules.module", lambda module: _forward(module, observer)),
        ("torch.autograd", lambda module: _backward(module, observer)),
        ("torch", add_end),
        *([("torch.optim.optimizer", lambda module: _optimizers(module, observer))] if observer.whole else []),
        *([("torch.optim.optimizer", lambda module: _gradients(module, observer))] if gradients else []),
    ]


def _forward(module: Any, observer: Observer) -> None:
    def record(model: Any, args: tuple[Any, ...], result: Any) -> None:
        observer.root(model)
        if observer.whole:
            observer.record("input", args)
        observer.record("output", result)

    trial.after_model_calls(module, record)


def _optimizers(module: Any, observer: Observer) -> None:
    def keep(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not any(optimizer is known for known in observer.optimizers[:_MAX_ALIVE]):
            observer.optimizers.append(optimizer)

    module.register_optimizer_step_pre_hook(keep)


def _gradients(module: Any, observer: Observer) -> None:
    def record(optimizer: Any, args: Any, kwargs: Any) -> None:
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        for number, parameter in enumerate(parameters):
            if parameter.grad is not None:
                observer.record(f"gradients.{number}", parameter.grad)

    module.register_optimizer_step_pre_hook(record)


def _backward(module: Any, observer: Observer) -> None:
    trial.around_backward(module, before=lambda losses: observer.record("loss", list(losses)))

"""Count FLOPs, operators and the bytes that these write in early cycles of the loop, and time the operators.

FLOPs by the formulas of torch's own flop counter, and :mod:`unstall.child.recurrent_flops`.

Runs in the user's process, between two calls of the same seam. Every operator is passed on as it is, nothing is
decomposed, so results stay the same bit for bit.
"""

from __future__ import annotations

import functools
import sys
import time
from typing import Any

from unstall.child import handlers, op_times, reading, recurrent_flops
from unstall.child.recomputation import Call

_DEVICES = ("CPU", "CUDA", "MPS", "XPU", "HPU", "PrivateUse1")
_UNCOUNTED = (
    "rnn",
    "lstm",
    "gru",
    "fft",
    "linalg",
    "cholesky",
    "_ctc",
    "grid_sampler",
    "embedding_bag",
    "_sparse_",
)
"""Costly operators without a formula: they lower the coverage that is reported."""
_CHEAP = frozenset({"linalg_vector_norm", "linalg_cross", "linalg_diagonal"})
"""Named like these, and as cheap as what is done to each number alone: clipping takes the norm of each gradient."""
_DTYPES = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
"""Of the constants of a traced model, whatever the program has made the default one."""


def compiled() -> bool:
    """Whether torch.compile has compiled anything: its graphs do not show their operators."""
    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", None)
    return bool(counters and counters.get("frames"))


def _shape(value: Any) -> Any:
    """The shape of a tensor of a class of the program's, whose own ``shape`` may run its code; all else as it is.

    A formula takes a shape as well as the tensor.
    """
    kind = type(value)
    if kind.__module__.partition(".")[0] == "torch":
        return value
    shape = reading.shape(value)
    return value if shape is None else sys.modules["torch"].Size(shape)


@functools.cache
def _is_view(func: Any) -> bool:
    """Whether an operator only looks at memory that is there: it returns an alias that it does not write to."""
    aliases = [value.alias_info for value in func._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


def _written(func: Any, out: Any) -> int:
    """Bytes of an operator's results, of torch's own tensors; those of the program's classes may run its code."""
    if _is_view(func):
        return 0
    results = out if isinstance(out, (tuple, list)) else (out,)
    return sum(_bytes(tensor) for tensor in results if type(tensor).__module__.partition(".")[0] == "torch")


def _bytes(tensor: Any) -> int:
    try:
        return int(tensor.nbytes)
    except Exception:  # a sparse one; or something else that torch returns
        return 0


def _are_dense(values: Any) -> bool:
    """Whether all tensors among these are dense: others have operators of their own."""
    tensor = sys.modules["torch"].Tensor
    return all(
        _are_dense(value)
        if isinstance(value, (tuple, list))
        else not issubclass(type(value), tensor) or reading.is_dense(value)
        for value in values
    )


def _as_declared(func: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """An operator's arguments with a tensor for each number where it takes a tensor; None where there is none.

    torch shows modes the constants of a traced model as numbers, and most operators refuse them.
    """
    torch = sys.modules["torch"]
    declared = list(args)
    with reading.unobserved():
        for place, (argument, value) in enumerate(zip(func._schema.arguments, args)):
            if type(value) in _DTYPES and isinstance(argument.type, torch.TensorType):
                declared[place] = torch.tensor(value, dtype=getattr(torch, _DTYPES[type(value)]))
    return tuple(declared) if any(new is not old for new, old in zip(declared, args)) else None


def make_counter() -> Any:
    """A dispatch mode with ``flops``, ``ops``, ``written``, ``known`` and ``unknown`` counts, and ``times``.

    Enter and leave it; tell it where another of the ``cycles`` begins. ``times`` are the operators'
    :class:`op_times.OperatorTimes`; None where torch is too old.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry

    implicit = torch._C.DispatchKey.CompositeImplicitAutograd

    @functools.cache
    def is_composite(func: Any) -> bool:
        """Whether an operator is a function that calls others, the same on all devices."""
        has_kernel = functools.partial(torch._C._dispatch_has_kernel_for_dispatch_key, func.name())
        return has_kernel(implicit) and not any(map(has_kernel, _DEVICES))

    def are_dense(values: Any) -> bool:
        with reading.unobserved():
            return _are_dense(values)

    def any_sparse(values: Any) -> bool:
        with reading.unobserved():
            return any(map(reading.is_sparse, values))

    class Counter(TorchDispatchMode):
        cycles = 1
        flops = 0
        ops = 0
        written = 0
        known = 0
        unknown = 0
        times = op_times.of_this_torch()
        in_inference = False
        """Whether it was entered in a block of torch.inference_mode()."""

        def enter(self) -> None:
            self.in_inference = torch.is_inference_mode_enabled()
            self.__enter__()

        def leave(self) -> None:
            self.__exit__(None, None, None)

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # Otherwise the first operator imports torch._dynamo, to keep it away from here: about a second of the
            # program's. Nothing is compiled where this is used; older torch does not ask.
            return False

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if torch.is_inference_mode_enabled() and is_composite(func) and are_dense([*args, *kwargs.values()]):
                with self:  # is shown what it consists of, as it is outside of inference mode
                    return func._op_dk(implicit, *args, **kwargs)
            began = time.thread_time()  # few cycles are timed, in which others may take the core
            try:
                out = func(*args, **kwargs)
            except RuntimeError:
                declared = _as_declared(func, args)
                if declared is None:
                    raise
                args = declared
                out = func(*args, **kwargs)
            seconds = time.thread_time() - began
            try:
                # Nobody calls this where torch computes the gradients of a GPU's tensors: in a thread of its own.
                self._account(seconds, sys._getframe().f_back, Call(func, args, kwargs, out))
            except Exception as error:
                if handlers.raised(error):
                    raise
                self.unknown += 1
            return out

        def _account(self, seconds: float, frame: Any, call: Call) -> None:
            """An operator has run, in so much of its thread's time, called by the code of a frame, if by any."""
            self._time(seconds, frame, call)
            func, args, kwargs, out = call
            self.ops += 1
            self.written += _written(func, out)
            formula = flop_registry.get(func.overloadpacket)
            if formula is not None and any_sparse(args):
                self.unknown += 1  # its formula takes all zeros for arithmetic
            elif formula is not None:
                shapes = [_shape(arg) for arg in args]
                named = {name: _shape(arg) for name, arg in kwargs.items()}
                self.flops += int(formula(*shapes, **named, out_val=_shape(out)))
                self.known += 1
            else:
                self._count_without_formula(func.overloadpacket.__name__, args)

        def _count_without_formula(self, name: str, args: Any) -> None:
            recurrent = recurrent_flops.of_call(name, args)
            if recurrent is not None:
                self.flops += recurrent
                self.known += 1
            elif name not in _CHEAP and any(word in name for word in _UNCOUNTED):
                self.unknown += 1

        def next_cycle(self) -> None:
            self.cycles += 1
            if self.times is not None:
                self.times.next_cycle()

        def _time(self, seconds: float, frame: Any, call: Call) -> None:
            if self.times is None:
                return
            try:
                self.times.add(seconds, frame, call)
            except Exception as error:
                if handlers.raised(error):
                    raise
                self.times = None

    return Counter()


def is_seen() -> bool:
    """Whether operators are shown to the modes that were entered: the end of a block of inference_mode() ends that."""
    return bool(sys.modules["torch"]._C._dispatch_tls_is_dispatch_key_included("Python"))


def may_leave(counter: Any) -> bool:
    """Whether a counter may be left here: not under a mode of the program's that was entered later.

    Nor in a block of inference_mode() that was entered later: at its end torch goes back to what was before it, to
    showing operators to modes, and fails where there is none.
    """
    if innermost_mode() is not counter:
        return False
    inside = sys.modules["torch"].is_inference_mode_enabled() and not counter.in_inference
    return not (inside and is_seen())


def innermost_mode() -> Any:
    """The dispatch mode that was entered last and is still active; None where there is none."""
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    return _get_current_dispatch_mode()

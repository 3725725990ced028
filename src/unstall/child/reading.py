"""Read facts off the program's objects so that it cannot notice: none of its code runs, no operator is dispatched.

Its classes may overload attributes and methods, and it may have put modes or a tracer in the way of torch's functions.
So attributes are read where instances keep them, and shapes by torch's and numpy's own accessors.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator
from types import CodeType, FrameType, FunctionType, SimpleNamespace
from typing import Any

from unstall.child import instances
from unstall.child.recording import native

_PARTS = ("_parameters", "_buffers", "_modules")


class unobserved:
    """While it is entered, what is asked of a tensor reaches no ``__torch_function__``, no mode, and no tracer.

    Not a generator: what a signal handler of the program's raises meanwhile would seem to come from there.
    """

    def __enter__(self) -> None:
        self._torch: Any = getattr(sys.modules.get("torch"), "_C", None)
        if self._torch is not None:
            self._tracing = self._torch._get_tracing_state()
            self._disabled = self._torch.DisableTorchFunction()
            self._disabled.__enter__()
            if self._tracing is not None:
                self._torch._set_tracing_state(None)

    def __exit__(self, *error: object) -> None:
        if self._torch is not None:
            if self._tracing is not None:
                self._torch._set_tracing_state(self._tracing)
            self._disabled.__exit__(*error)


def attributes(value: Any) -> dict[str, Any]:
    """What an instance holds of attributes, by name; empty where it has none. Not to be changed.

    Its ``__dict__`` is asked for only where that costs the program nothing: see :mod:`unstall.child.instances`.
    """
    return instances.attributes(value)


def shape(value: Any) -> tuple[int, ...] | None:
    """Of a tensor or an array; None for all else, and for tensors whose class answers for it in Python."""
    kind = type(value)
    tensor: Any = getattr(sys.modules.get("torch"), "Tensor", ())
    if issubclass(kind, tensor):
        return None if is_opaque(kind, tensor) else tuple(tensor.shape.__get__(value))
    array: Any = getattr(sys.modules.get("numpy"), "ndarray", ())
    return array.shape.__get__(value) if issubclass(kind, array) else None


def is_opaque(kind: type, tensor: Any) -> bool:
    """Whether a class of tensors answers in Python even for the shape."""
    return getattr(kind, "__torch_dispatch__", None) is not getattr(tensor, "__torch_dispatch__", None)


def is_dense(tensor: Any) -> bool:
    """Whether a tensor is of torch's own classes and laid out in memory by strides, number by number."""
    torch = sys.modules["torch"]
    is_own = type(tensor) in (torch.Tensor, torch.nn.Parameter)
    return is_own and tensor.layout is torch.strided and not (tensor.is_nested or tensor.is_quantized)


def is_sparse(value: Any) -> bool:
    """Whether a value is a tensor of torch's own classes that holds the numbers that are not zero, and their places."""
    torch = sys.modules["torch"]
    is_own = type(value) in (torch.Tensor, torch.nn.Parameter)
    return is_own and str(value.layout).startswith("torch.sparse_")


def modules(root: Any, prefix: str = "", known: set[int] | None = None) -> Iterator[tuple[str, Any]]:
    """Name and module of a ``torch.nn.Module`` and all in it, each once, as ``named_modules`` gives them."""
    known = set() if known is None else known
    if id(root) in known:
        return
    known.add(id(root))
    yield prefix, root
    for name, child in _held(root, "_modules"):
        yield from modules(child, f"{prefix}.{name}" if prefix else name, known)


def children(root: Any) -> list[tuple[str, Any]]:
    """Name and module of those that a ``torch.nn.Module`` holds itself."""
    return list(_held(root, "_modules"))


def own_parameters(module: Any) -> list[Any]:
    """The parameters that a ``torch.nn.Module`` holds itself."""
    return [parameter for _, parameter in _held(module, "_parameters")]


def parameters(root: Any) -> Iterator[Any]:
    """The parameters of a ``torch.nn.Module`` and of all in it, each once."""
    known = set()
    for _, module in modules(root):
        for parameter in own_parameters(module):
            if id(parameter) not in known:
                known.add(id(parameter))
                yield parameter


def memory(tensor: Any, dtypes: Container[str], count: int) -> tuple[str, bytes] | None:
    """The dtype, by its name, and the bytes of a contiguous tensor of torch's own on the CPU; None for all else.

    None, too, where it has another dtype than these, or another number of elements. The bytes are read, because the
    program's modes and profilers would see an operator.
    """
    import ctypes  # torch has imported it already

    if type(tensor) is not getattr(sys.modules.get("torch"), "Tensor", None):
        return None
    try:
        with unobserved():
            dtype = str(tensor.dtype)
            is_other = dtype not in dtypes or tensor.numel() != count
            if is_other or tensor.device.type != "cpu" or not tensor.is_contiguous():
                return None
            return dtype, ctypes.string_at(tensor.data_ptr(), count * tensor.element_size())
    except RuntimeError:  # it has no memory of its own: a stand-in of torch.func's, say
        return None


def written_at(value: Any, method: str = "forward") -> dict[str, Any]:
    """File and line of a method of a value's class; empty and 0 where it is not written in Python."""
    return place_of(_of_class(value, method))


def code_of(value: Any, method: str) -> CodeType | None:
    """The code of a method of a value's class; None where it is not written in Python."""
    return _code(_of_class(value, method))


def _of_class(value: Any, method: str) -> Any:
    classes = type.__getattribute__(type(value), "__mro__")
    return next((kind.__dict__[method] for kind in classes if method in kind.__dict__), None)


def _code(function: Any) -> CodeType | None:
    function = native.inner(function)
    return function.__code__ if type(function) is FunctionType else None


def place_of(function: Any) -> dict[str, Any]:
    """File and line of a function; empty and 0 where it is not written in Python."""
    code = _code(function)
    return {"file": getattr(code, "co_filename", ""), "line": getattr(code, "co_firstlineno", 0)}


def line_of(frame: FrameType) -> int:
    """The line that a frame is at; its function's first where Python has none, as for the jump back of some loops."""
    line: int | None = frame.f_lineno
    return frame.f_code.co_firstlineno if line is None else line


def described(module: Any) -> str:
    """The settings of a module of torch's, or of one derived from it, as torch words them; empty for all others.

    A stand-in with the same attributes is asked: none of the program's methods and properties is met.
    """
    base: Any = next((kind for kind in type(module).__mro__ if kind.__module__.startswith("torch.nn.modules.")), None)
    held = dict(attributes(module))  # DeepSpeed's engine has its module there, too
    held.update(pair for kind in _PARTS for pair in _registered(module, kind))
    stand_in = SimpleNamespace(**held)
    try:
        with unobserved():
            return str(base.extra_repr(stand_in))
    except (AttributeError, TypeError):  # it needs more than attributes
        return ""


def _held(module: Any, kind: str) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in _registered(module, kind) if value is not None]


def _registered(module: Any, kind: str) -> list[tuple[str, Any]]:
    """Names and values; None is registered too, for a bias that there is not."""
    if type(module).__module__.startswith("torch.jit."):  # torch's own class, which keeps them in C++
        held = getattr(module, kind, None)
    else:
        held = attributes(module).get(kind)
    return list(held.items()) if held is not None else []

"""Loops over numbers, compiled by Numba for each kind of arguments with which that gives what Python gives."""

from __future__ import annotations

import itertools
import math
import types
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy
import torch


class _Listed:
    """``values.tolist()``, of a tensor or an array, which becomes a list only where somebody needs one.

    A list is what it is.
    """

    def __init__(self, values: Any):
        self.values = values

    def tolist(self) -> Any:
        """The list."""
        return self.values if type(self.values) is list else self.values.tolist()

    def array(self) -> Any:
        """The numbers of the list. Raises TypeError where they are none."""
        values = self.values
        if type(values) is list:
            return _CompiledLoop._array(values)
        if isinstance(values, torch.Tensor):
            values = values.detach().cpu()
            values = (values.float() if values.dtype == torch.bfloat16 else values).numpy()
        kind = getattr(getattr(values, "dtype", None), "kind", "")
        if kind not in "fiub" or not values.ndim or values.dtype in ("uint64", "longdouble"):
            raise TypeError("no list of numbers")
        wanted = {"f": "float64", "b": "bool"}.get(kind, "int64")
        return numpy.array(values, wanted, order="C")


def _compiled(changed: str = "", written: str = "") -> Callable[[Any], _CompiledLoop]:
    """Of a function that does nothing but compute with its arguments, some of whose items it changes.

    changed: the names of those. written: of those that it only writes into.
    """
    return lambda loop: _CompiledLoop(loop, changed.split(), written.split())


class _CompiledLoop:
    """The function as Numba compiles it, and in Python where a compiled one might give something else.

    Python's numbers are those of the compiled code as long as they are floats, bools and integers of 64 bits; so they
    are in lists, of which it gets arrays. Items of other arrays are numbers of NumPy, with rules of their own.
    """

    def __init__(self, loop: Any, changed: list[str], written: list[str]):
        self.loop = loop
        names = loop.__code__.co_varnames[: loop.__code__.co_argcount]
        self.changed = {place for place, name in enumerate(names) if name in changed}
        self.written = {place for place, name in enumerate(names) if name in written}
        self.kernels: dict[Any, Any] = {}
        """By the kinds of the arguments; None where they are left to Python."""

    def __call__(self, *arguments: Any) -> Any:
        try:
            numbers = [self._numbers(place, argument) for place, argument in enumerate(arguments)]
        except (TypeError, ValueError, OverflowError):
            return self._in_python(arguments)
        arrays = {
            place for place, argument in enumerate(arguments) if isinstance(argument, (numpy.ndarray, torch.Tensor))
        }
        by_numpy = bool(arrays - self.written)
        key = (by_numpy, bool(arrays), *map(self._kind, numbers))
        if key not in self.kernels:
            self.kernels[key] = self._kernel(numbers, by_numpy=by_numpy, has_arrays=bool(arrays))
        kernel = self.kernels[key]
        if kernel is None or not self._apart(arguments):
            return self._in_python(arguments)
        try:
            result = kernel(*numbers)
        except BaseException:
            self._put_back_all(arguments, numbers)
            raise
        if self._shares(arguments, numbers, result):
            self.kernels[key] = None  # a part of a list that was given, and no other with the same numbers
            return self._in_python(arguments)
        self._put_back_all(arguments, numbers)
        return self._plain(result)

    def _in_python(self, arguments: Any) -> Any:
        return self.loop(*(argument.tolist() if isinstance(argument, _Listed) else argument for argument in arguments))

    def _numbers(self, place: int, argument: Any) -> Any:
        """What the compiled code gets. Raises TypeError, ValueError or OverflowError for what is no numbers."""
        if type(argument) in (float, bool, str):
            return argument
        if type(argument) is int and -(2**63) <= argument < 2**63:
            return argument
        if isinstance(argument, _Listed):
            return argument.array()
        if isinstance(argument, tuple) and {*map(type, argument)} <= {int, float, bool}:
            return tuple(argument)
        if type(argument) is list:
            return self._array(argument)
        if place in self.written and type(argument) is torch.Tensor and not argument.requires_grad:
            argument = argument.numpy()  # raises TypeError on another device
        elif type(argument) is not numpy.ndarray or (
            place not in self.written and argument.dtype not in ("float64", "int64", "bool")
        ):
            raise TypeError("neither numbers nor lists of them")
        return argument

    @staticmethod
    def _array(values: Any) -> Any:
        """A list of numbers of one type, or of such lists of one length, as an array."""
        flat = values
        while {*map(type, flat)} == {list}:
            if len({*map(len, flat)}) != 1:
                raise ValueError("lists of several lengths")
            flat = [*itertools.chain.from_iterable(flat)]
        kinds = {*map(type, flat)}
        dtype = {float: "float64", int: "int64", bool: "bool"}.get(kinds.pop() if len(kinds) == 1 else object)
        if dtype is None:
            raise TypeError("no list of numbers of one type")
        return numpy.array(values, dtype)

    @staticmethod
    def _kind(number: Any) -> Any:
        if isinstance(number, numpy.ndarray):
            flags = number.flags
            return number.dtype.str, number.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable
        return tuple(map(type, number)) if isinstance(number, tuple) else type(number)

    def _apart(self, arguments: Any) -> bool:
        """Whether no list is given twice, alone or in others, where one is changed: each becomes its own array."""
        changed = [arguments[place] for place in self.changed if type(arguments[place]) is list]
        lists = [id(inner) for argument in arguments if type(argument) is list for inner in self._lists(argument)]
        return not changed or len(lists) == len({*lists})

    def _lists(self, values: Any) -> Iterator[Any]:
        yield values
        if values and type(values[0]) is list:
            for inner in values:
                yield from self._lists(inner)

    def _shares(self, arguments: Any, numbers: Any, result: Any) -> bool:
        """Whether the result has in it a part of a list that others have, or twice of one that nobody has."""
        arrays = [*self._arrays(result)]
        for argument, number in zip(arguments, numbers):
            allowed = 1 if isinstance(argument, _Listed) else 0
            if sum(numpy.may_share_memory(array, number) for array in arrays) > allowed:
                return True
        return False

    def _arrays(self, result: Any) -> Iterator[Any]:
        """The arrays in a result."""
        if isinstance(result, numpy.ndarray):
            yield result
        elif isinstance(result, tuple) or self._is_nested(result):
            for inner in result:
                yield from self._arrays(inner)

    @staticmethod
    def _is_nested(result: Any) -> bool:
        return type(result) is list and bool(result) and isinstance(result[0], (list, numpy.ndarray))

    def _put_back_all(self, arguments: Any, numbers: Any) -> None:
        for place in self.changed:
            self._put_back(arguments[place], numbers[place])

    def _put_back(self, values: Any, array: Any) -> None:
        """Change a list as its array was changed."""
        if type(values) is not list:
            return
        if array.ndim == 1:
            values[:] = array.tolist()
        else:
            for inner, row in zip(values, array):
                self._put_back(inner, row)

    def _plain(self, result: Any) -> Any:
        """Lists again of what was a list: the compiled code has arrays in their place."""
        if isinstance(result, numpy.ndarray):
            return result.tolist()
        if isinstance(result, tuple):
            return tuple(map(self._plain, result))
        if self._is_nested(result):
            return [*map(self._plain, result)]
        return result

    # ------------------------------------------------------------------ compiling

    def _kernel(self, numbers: Any, *, by_numpy: bool, has_arrays: bool) -> Any:
        """The function compiled for such arguments; None where it cannot be, or would not mean the same."""
        functions: dict[str, Any] = {}
        options = {"boundscheck": True, "error_model": "numpy" if by_numpy else "python"}
        kernel = self._with_functions(self.loop, functions, options)
        try:
            kernel.compile(tuple(map(numba.typeof, numbers)))
        except Exception:  # whatever it is that the compiler cannot do
            return None
        mixed = by_numpy and any(not isinstance(number, (int, float, str, numpy.ndarray)) for number in numbers)
        results = [compiled for each in (kernel, *functions.values()) for compiled in each.overloads.values()]
        same = all(self._means_the_same(compiled.type_annotation, mixed) for compiled in results)
        return kernel if same and not (has_arrays and self._gives_array(kernel)) else None

    @staticmethod
    def _gives_array(kernel: Any) -> bool:
        """Whether the result may be, or have in it, an array that was given."""
        (compiled,) = kernel.overloads.values()
        return "array" in str(compiled.signature.return_type)

    def _with_functions(self, function: Any, functions: dict[str, Any], options: Any) -> Any:
        """A function for Numba, and with it those of its file that it calls."""
        space = {**function.__globals__, "all": numba.njit(self._all), "any": numba.njit(self._any)}
        for name in self._names(function.__code__):
            called = function.__globals__.get(name)
            if called is math:
                space[name] = types.ModuleType("math")
                vars(space[name]).update({each: self._as_python_raises(of) for each, of in vars(math).items()})
            elif isinstance(called, types.BuiltinFunctionType):
                space[name] = self._as_python_raises(called)
            elif isinstance(called, types.FunctionType):
                if name not in functions:
                    functions[name] = None  # it may call itself
                    functions[name] = self._with_functions(called, functions, options)
                space[name] = functions[name]
        copied = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__)
        return numba.njit(**options)(copied)

    def _names(self, code: Any) -> Iterator[str]:
        """The names that a function, or a comprehension in it, looks up outside of it."""
        yield from code.co_names
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                yield from self._names(constant)

    @staticmethod
    def _as_python_raises(function: Any) -> Any:
        """A function of ``math`` that raises errors where it is not defined, or too large; others as they are."""
        if function not in (math.exp, math.log, math.log2, math.log10, math.sqrt, math.sin, math.cos, math.tan):
            return function
        grows = function is math.exp

        @numba.njit
        def raising(x: Any) -> Any:
            result = function(x)
            is_infinite = math.isinf(result) and not math.isinf(x)
            if is_infinite and grows:
                raise OverflowError("math range error")
            if is_infinite or (math.isnan(result) and not math.isnan(x)):
                raise ValueError("math domain error")
            return result

        return raising

    @staticmethod
    def _all(values: Any) -> bool:
        found = True
        for value in values:
            found = found and bool(value)
        return found

    @staticmethod
    def _any(values: Any) -> bool:
        found = False
        for value in values:
            found = found or bool(value)
        return found

    def _means_the_same(self, annotation: Any, mixed: bool) -> bool:
        """Whether every operation, with the types that it has in the compiled code, is the one that Python would do."""
        for node, signature in annotation.calltypes.items():
            if signature is None:
                continue
            operation = getattr(node, "op", "")
            kinds = [numba.types.unliteral(kind) for kind in signature.args]
            if operation in ("binop", "inplace_binop", "unary"):
                if not self._is_python(node.fn.__name__.removeprefix("i"), kinds, mixed):
                    return False
            elif isinstance(node, (numba.core.ir.SetItem, numba.core.ir.StaticSetItem)):
                if not self._holds(kinds[0], numba.types.unliteral(annotation.typemap[node.value.name])):
                    return False
            elif operation == "call":
                given = [numba.types.unliteral(annotation.typemap[argument.name]) for argument in node.args]
                if not self._is_plain_call(annotation.typemap[node.func.name], given):
                    return False
        return True

    def _is_python(self, operation: Any, kinds: Any, mixed: bool) -> bool:
        """Whether an operator does with these what Python does with such numbers and lists."""
        integers = [kind for kind in kinds if isinstance(kind, numba.types.Integer)]
        numbers = [kind for kind in kinds if isinstance(kind, numba.types.Number)]
        if any(isinstance(kind, numba.types.Array) for kind in kinds):
            return operation == "contains" and not mixed
        if any(kind.bitwidth != 64 for kind in numbers) or any(not kind.signed for kind in integers):
            return False
        if operation in ("pow", "lshift"):
            return len(integers) < len(kinds)  # Python's integers would not overflow
        return not (mixed and operation in ("truediv", "floordiv", "mod"))

    @staticmethod
    def _holds(container: Any, value: Any) -> bool:
        """Whether what is put into a list or an array stays what it is."""
        is_float = isinstance(getattr(container, "dtype", None), numba.types.Float)
        if isinstance(container, numba.types.List) and isinstance(value, numba.types.Number):
            return is_float == isinstance(value, numba.types.Float)
        return is_float or not isinstance(value, numba.types.Float)

    def _is_plain_call(self, function: Any, kinds: Any) -> bool:
        if isinstance(function, numba.types.BoundFunction) and isinstance(function.this, numba.types.List):
            return all(self._holds(function.this, kind) for kind in kinds)
        is_truth = getattr(function, "typing_key", None) is bool
        return not (is_truth and any(isinstance(kind, numba.types.Array) for kind in kinds))

"""What gives the same for many rows at once as for each of them alone, bit for bit, by the name that it is called by.

Only what IEEE arithmetic rounds in one way: no ``exp`` or ``sin``, whose vectorised forms differ in the last bits from
those for what is left over at the end, and nothing that adds up.
"""

from __future__ import annotations

import libcst as cst

OPERATORS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo)
COMPARISONS = (cst.Equal, cst.NotEqual, cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
SIGNS = (cst.Minus, cst.Plus, cst.BitInvert)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ELEMENTWISE_METHODS = _words(
    "float double half bfloat16 long int short char byte bool to type astype clone copy contiguous detach cpu numpy "
    "abs neg sqrt square floor ceil trunc round sign clamp clip add sub mul div eq ne lt le gt ge logical_not"
)
"""Methods of tensors and arrays that neither know dimensions nor change anything."""

COPYING_METHODS = frozenset(("astype", "clone", "copy"))
"""Those of which the result shares no memory with the row."""

ELEMENTWISE_FUNCTIONS = frozenset(
    {
        "torch.as_tensor", "torch.from_numpy", "numpy.asarray", "numpy.array", "numpy.ascontiguousarray",
        "torch.nn.functional.one_hot",
        *(f"{library}.{name}" for library in ("torch", "numpy") for name in ("abs", "sqrt", "square", "clip", "sign")),
        "torch.clamp",
        *(f"numpy.{name}" for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")),
    }
)  # fmt: skip
"""Functions that compute element by element, and whose first argument is the row."""

MAKES_TENSOR = {
    "torch.tensor": "", "torch.Tensor": "float32", "torch.FloatTensor": "float32", "torch.DoubleTensor": "float64",
    "torch.LongTensor": "int64", "torch.IntTensor": "int32", "torch.BoolTensor": "bool",
}  # fmt: skip
"""Functions that copy a row into a tensor, and the data type that they give it."""

SHARED_BUILTINS = frozenset(
    f"builtins.{name}" for name in ("len", "range", "int", "float", "bool", "str", "tuple", "list", "dict")
)
"""Builtin functions that may be called for all samples at once, with what is no sample's own."""

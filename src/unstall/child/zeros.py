"""How much of what an operator multiplies is zeros: arithmetic that nothing comes of. Runs in the user's process.

As where a kernel has numbers on its diagonal alone, where rows are picked by a product with ones and zeros, or where
no loss depends on most rows of a gradient.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from unstall.child import reading, tensor_memory
from unstall.child.recomputation import Call

_OPERANDS = {
    "mm": (0, 1), "addmm": (1, 2), "bmm": (0, 1), "baddbmm": (1, 2), "convolution": (1,), "convolution_backward": (2,),
}  # fmt: skip
"""Places of the arguments that are multiplied, by the operator; of a convolution the kernel alone."""
_SUMS = ("add", "add_")
"""Of a table's gradients from several places: these are zeros wherever no row was looked up, and so large anyhow."""
_DTYPES = {"torch.float32": "f4", "torch.float64": "f8", "torch.bfloat16": "u2", "torch.float16": "u2"}
_PRODUCT, _KERNEL, _ROWS = (True, (-1, -2)), (True, ()), (False, (-1,))
"""Of an operand: whether zeros anywhere count, and along which axes stretches of them do."""
_LEAST_S = 50e-6
_LEAST_NUMBERS = 4096
_MOST_BYTES = 1 << 28
_SPARSE = 0.9
"""From this share of zeros on, it does not matter where they are; else whole rows or columns count."""
_NOTABLE = 0.5
"""Rectified numbers are zeros by halves, and nobody computes without them."""


class Zeros:
    """Reads the operands of the larger products of one thread."""

    def __init__(self, torch: Any, numpy: Any, *, budget_bytes: int = 1 << 30):
        """``budget_bytes``: of all that is read, half a second or so."""
        self._tensor, self._parameter = torch.Tensor, torch.nn.Parameter
        self._numpy = numpy
        self._left = budget_bytes

    def share(self, call: Call, seconds: float, *, of_gradients: bool) -> float:
        """Of an operator's multiplications, those by zeros; 0 where that is less than half, or not known.

        ``of_gradients``: it is one of backward; then an operator that is no product is given rows of gradients first.
        """
        if seconds < _LEAST_S:
            return 0.0
        name = call.func.overloadpacket.__name__
        places = _OPERANDS.get(name)
        with reading.unobserved():
            if places is not None:
                kinds = _PRODUCT if len(places) > 1 else _KERNEL
                useful = math.prod(self._useful(call.args[place], *kinds) for place in places)
            elif of_gradients and call.args and name not in _SUMS:
                given = call.args[0]
                is_scalar = type(given) is self._tensor and not given.dim()  # of a loss: the rows are what comes of it
                useful = self._useful(call.out if is_scalar else given, *_ROWS)
            else:
                useful = 1.0
        return 1 - useful if useful <= _NOTABLE else 0.0

    def _useful(self, tensor: Any, sparse: bool, axes: tuple[int, ...]) -> float:
        """Share of an operand's numbers that something may come of; 1 where that is not known.

        All zeros are the beginning of a training, and those among parameters are not to be left out.

        Args:
            tensor: the operand, or anything else.
            sparse: whether zeros may be anywhere, where nearly all are.
            axes: else whole stretches of zeros along each of these count.
        """
        array = self._array(tensor)
        if array is None:
            return 1.0
        nonzero = array != 0
        share = float(self._numpy.count_nonzero(nonzero)) / array.size
        if not share:
            return 1.0
        if sparse and share <= 1 - _SPARSE:
            return share
        return math.prod(float(nonzero.any(axis=axis).mean()) for axis in axes)

    def _array(self, tensor: Any) -> Any:
        """Its memory, unless it is a parameter, or small, or too large."""
        if type(tensor) is not self._tensor or not reading.is_dense(tensor):
            return None
        dtype = _DTYPES.get(str(tensor.dtype))
        size = tensor.numel() * tensor.element_size()
        if dtype is None or tensor.numel() < _LEAST_NUMBERS or tensor.dim() < 2:
            return None
        if size > min(self._left, _MOST_BYTES):
            return None
        if tensor._is_view() and isinstance(tensor._base, self._parameter):
            return None
        array = tensor_memory.array_of(tensor, dtype)
        self._left -= size * (array is not None)
        return array


def of_this_torch() -> Zeros | None:
    """None where the program has not imported NumPy."""
    numpy = sys.modules.get("numpy")
    return Zeros(sys.modules["torch"], numpy) if numpy is not None else None

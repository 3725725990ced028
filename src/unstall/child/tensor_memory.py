"""A tensor's memory as a NumPy array. Runs in the user's process.

Read by NumPy where the program has imported it, because the program's modes and profilers would see an operator.
"""

from __future__ import annotations

import sys
from typing import Any

from unstall.child import reading


def array_of(tensor: Any, dtype: str) -> Any:
    """A view of the numbers of a tensor of torch's own on the CPU; None for all else, and where its memory is gone.

    None, too, where the program has not imported NumPy, or torch is too old. To be called where nothing is observed
    (:class:`unstall.child.reading.unobserved`).

    ``dtype``: NumPy's name of how each number is to be read, of as many bytes as the tensor's own.
    """
    numpy: Any = sys.modules.get("numpy")
    address = getattr(sys.modules["torch"]._C, "_data_address", None)
    if numpy is None or address is None or not reading.is_dense(tensor):
        return None
    if tensor.device.type != "cpu" or tensor.is_conj() or tensor.is_neg() or not tensor.numel():
        return None
    import ctypes  # torch has imported it already

    each = tensor.element_size()
    strides = [each * stride for stride in tensor.stride()]
    extent = each + sum((length - 1) * stride for length, stride in zip(tensor.shape, strides))
    offset = each * tensor.storage_offset()
    if offset + extent > tensor.untyped_storage().nbytes():  # given back already, as a sharded parameter's is
        return None
    memory = (ctypes.c_char * extent).from_address(address(tensor) + offset)
    return numpy.ndarray(tuple(tensor.shape), dtype, memory, 0, strides)

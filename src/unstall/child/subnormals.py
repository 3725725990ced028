"""How many of an optimizer's numbers are subnormal: so small that a processor takes many times longer over each.

The moving averages of a gradient that stays zero, as that of a word that no batch has, are halved every few steps until
nothing is left, and are subnormal on the way. Runs in the user's process.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

from unstall.child import reading, tensor_memory

_LAYOUTS = {
    "torch.float32": ("u4", 0x7F80_0000, 0x007F_FFFF),
    "torch.float64": ("u8", 0x7FF0_0000_0000_0000, 0x000F_FFFF_FFFF_FFFF),
}
"""How the bits are read, those of the exponent and of the fraction. Shorter numbers are computed with as float32."""
_MOST_TENSORS = 256
_MOST_NUMBERS = 1 << 14
"""Of a tensor: read evenly spread, a whole look takes some tens of milliseconds at most."""


def share(optimizer: Any) -> float:
    """Of the numbers that an optimizer keeps from step to step and has on the CPU; 0 where it keeps none."""
    found = read = 0.0
    if "torch" not in sys.modules:  # one of another framework's
        return 0.0
    with reading.unobserved():
        for tensor in itertools.islice(_kept(optimizer), _MOST_TENSORS):
            layout = _LAYOUTS.get(str(getattr(tensor, "dtype", "")))
            bits = tensor_memory.array_of(tensor, layout[0]) if layout is not None else None
            if layout is None or bits is None or not bits.flags.c_contiguous:
                continue
            _, exponent, fraction = layout
            size = bits.size
            some = bits.reshape(-1)[:: max(1, size // _MOST_NUMBERS)]
            small = ((some & exponent) == 0) & ((some & fraction) != 0)
            found += float(small.mean()) * size
            read += size
    return found / read if read else 0.0


def _kept(optimizer: Any) -> Iterator[Any]:
    """The tensors of its state: moving averages of gradients, above all."""
    state = reading.attributes(optimizer).get("state")
    for of_parameter in list(state.values()) if isinstance(state, dict) else ():
        if isinstance(of_parameter, dict):
            yield from (each for each in list(of_parameter.values()) if reading.is_dense(each))

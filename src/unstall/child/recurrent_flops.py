"""FLOPs of recurrent layers that one operator computes as a whole: torch's flop counter has no formula for them.

Each position of each sequence is multiplied by every matrix of the layer, two operations an entry; the gradients take
as many for the inputs and as many for the weights. Biases and the gates' functions are left out, as torch's own
formulas do. Runs in the user's process.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from unstall.child import reading

_TIMES = {
    "mkldnn_rnn_layer": 1,
    "mkldnn_rnn_layer_backward": 2,
    "_cudnn_rnn": 1,
    "_cudnn_rnn_backward": 2,
    "miopen_rnn": 1,
    "miopen_rnn_backward": 2,
}
"""How many products with each matrix an operator computes."""


def of_call(name: str, args: Sequence[Any]) -> int | None:
    """What a call of the operator takes; None for another operator.

    Arguments are those that torch's dispatcher shows. Raises TypeError where a tensor's class answers for its shape.
    """
    times = _TIMES.get(name)
    if times is None:
        return None
    positions = math.prod(_shape(args[0])[:-1])
    return 2 * times * positions * sum(map(math.prod, _matrices(args)))


def _matrices(args: Sequence[Any]) -> Iterator[tuple[int, ...]]:
    """Shapes of a layer's weights without the biases: two arguments on a CPU, a list of all layers' on a GPU."""
    weights = args[1] if isinstance(args[1], (list, tuple)) else args[1:3]
    return (shape for shape in map(_shape, weights) if len(shape) == 2)


def _shape(tensor: Any) -> tuple[int, ...]:
    shape = reading.shape(tensor)
    if shape is None:
        raise TypeError("its class answers for its shape")
    return shape

"""Turn Python loops over elements into operations on whole arrays or tensors.

NumPy (:func:`vectorize`): an element-wise loop over pixels or cells becomes the same arithmetic on arrays, bit for bit.
A loop nest qualifies when every turn is independent of the others: it reads cells (of images, nested lists, arrays),
computes with numbers, and writes the cell of its own turn. Conditions become selections; pure Python functions of
numbers that it calls, the user's or the standard library's, are converted with it.

torch (:func:`mapped`): a loop whose turns only compute with rows of tensors becomes ``torch.vmap`` of one turn.
"""

from unstall.optimize.vectorize.loops import vectorize
from unstall.optimize.vectorize.mapped import mapped

__all__ = ["mapped", "vectorize"]

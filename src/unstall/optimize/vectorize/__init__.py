"""Turn an element-wise Python loop over pixels or cells into the same arithmetic on NumPy arrays, bit for bit.

A loop nest qualifies when every turn is independent of the others: it reads cells (of images, nested lists, arrays),
computes with numbers, and writes the cell of its own turn. Conditions become selections; pure Python functions of
numbers that it calls, the user's or the standard library's, are converted with it.
"""

from unstall.optimize.vectorize.loops import Vectorized, vectorize

__all__ = ["Vectorized", "vectorize"]

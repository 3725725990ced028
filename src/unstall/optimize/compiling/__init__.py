"""Loops over numbers, in Python, as functions that Numba compiles.

:mod:`language` is the part of Python that this is about, :mod:`region` finds the statements and the names that they
take and give, and :mod:`kernel` writes them as a function of their own. What may not be known before the program runs,
the types, is for :mod:`unstall.optimize.runtime.compiled` to see.
"""

from unstall.optimize.compiling.kernel import compiled

__all__ = ["compiled"]

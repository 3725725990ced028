"""Attention written by hand, found in a module's source."""

from unstall.optimize.attention.formula import Attention, find

__all__ = ["Attention", "find"]

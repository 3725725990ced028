"""Find what stalls a machine-learning program, and prove it."""

__version__ = "0.1.0"

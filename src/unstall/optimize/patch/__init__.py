"""The changes as a unified diff that ``git apply`` takes from the repository's root, and their application."""

from __future__ import annotations

from unstall.optimize.patch.diff import unified

__all__ = ["unified"]

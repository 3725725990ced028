"""Starts, in one process of the program, the means that the parent names in ``UNSTALL_SANDBOX_MEANS``."""

from __future__ import annotations

import os

from unstall import environment


def start() -> None:
    """Called by the bootstrap, before any of the program's code."""
    means = os.environ.get(environment.SANDBOX_MEANS, "").split(",")
    home = os.environ[environment.SANDBOX]
    if "network" in means:
        from unstall.child.sandbox import network

        network.install(home, relayed="relay" in means)
    if "renames" in means:
        from unstall.child.sandbox import renames

        renames.install()
    if "guard" in means:
        from unstall.child.sandbox import guard

        guard.install(home)

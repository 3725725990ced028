"""What ``unstall doctor`` finds out about a machine: what can be measured there, and how fast it is."""

from __future__ import annotations

import msgspec


class Capability(msgspec.Struct, omit_defaults=True, frozen=True):
    """One means of measuring, and whether it works here."""

    name: str
    works: bool
    detail: str
    advice: str = ""
    """What to do where it does not work."""
    optional: bool = False
    """Wanted only on request: its absence takes nothing from a plain run."""


class MachineRate(msgspec.Struct, frozen=True):
    """The most that the machine does of one thing: FLOP or bytes per second."""

    name: str
    per_s: float
    in_flop: bool = False
    listed_share: float | None = None
    """Share of the peak that the vendor lists, where it is known."""

"""What kind of layers a model's time goes into, by the names of torch's own."""

from __future__ import annotations

from collections.abc import Collection

from unstall.diagnose.features import HostFeatures
from unstall.diagnose.thresholds import MOST

RECURRENT = ("GRU", "LSTM", "RNN")
"""Types of layers whose steps wait for each other."""
CONVOLUTIONS = tuple(f"Conv{kind}{dims}d" for kind in ("", "Transpose") for dims in (1, 2, 3))


def is_mostly(host: HostFeatures, types: Collection[str]) -> bool:
    """Whether most of the modules' own time is in layers of these types."""
    total = sum(module.self_s for module in host.measurement.modules)
    of_types = sum(module.self_s for module in host.measurement.modules if module.type in types)
    return of_types > MOST * total > 0

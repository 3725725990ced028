"""What kind of layers a model's time goes into, by the names of torch's own."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from unstall.diagnose.features import HostFeatures
from unstall.diagnose.thresholds import MOST
from unstall.records.model import ModuleMeasurement

RECURRENT = ("GRU", "LSTM", "RNN")
"""Types of layers whose steps wait for each other."""
CONVOLUTIONS_2D = ("Conv2d", "ConvTranspose2d")
CONVOLUTIONS = tuple(f"Conv{kind}{dims}d" for kind in ("", "Transpose") for dims in (1, 2, 3))


def is_mostly(host: HostFeatures, types: Collection[str]) -> bool:
    """Whether most of the modules' own time is in layers of these types."""
    return share_of_types(host.measurement.modules, types) > MOST


def share_of_types(modules: Sequence[ModuleMeasurement], types: Collection[str]) -> float:
    """Share of the modules' own time that is in layers of these types; 0 where none was measured."""
    total = sum(module.self_s for module in modules)
    return sum(module.self_s for module in modules if module.type in types) / total if total else 0.0

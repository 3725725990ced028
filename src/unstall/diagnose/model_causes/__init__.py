"""What can be made cheaper about a model's mathematics, in the order in which it is looked for: waste first."""

from __future__ import annotations

from unstall.diagnose.features import HostFeatures
from unstall.diagnose.model_causes.attention import Attention
from unstall.diagnose.model_causes.base import ModelCause, Suspects
from unstall.diagnose.model_causes.copies import Copies
from unstall.diagnose.model_causes.costly import Backward, IdleCores, Kernel, Layer, Update
from unstall.diagnose.model_causes.hooks import Hooks
from unstall.diagnose.model_causes.memory import PageFaults
from unstall.diagnose.model_causes.wasted import Padding, Precision, UnusedGradients, Zeros

_KINDS = (
    Precision, UnusedGradients, Hooks, Padding, Zeros, Copies, Update, Backward, IdleCores, Attention,
    Kernel, Layer, PageFaults,
)  # fmt: skip
CAUSES: tuple[ModelCause, ...] = tuple(kind() for kind in _KINDS)
BY_NAME: dict[str | None, type[ModelCause]] = {kind.name: kind for kind in _KINDS}


def find(host: HostFeatures, suspects: Suspects) -> ModelCause | None:
    """The first that is to blame; None where nothing about the model is."""
    return next((cause for cause in CAUSES if cause.is_found(host, suspects)), None)

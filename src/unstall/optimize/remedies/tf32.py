"""Matrix products of float32 on a GPU's TensorFloat-32 units: 10 bits of precision, the range of float32."""

from __future__ import annotations

from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.remedies.threads import with_line_after_imports
from unstall.optimize.sources import SourceError
from unstall.text.units import percent

NAME = "tf32"
AREA: Area = "compute"
EXACTNESS: Exactness = "close"

_REMOVED = 0.3  # of the model's time
_MIN_SHARE = 0.3
_LINE = 'torch.set_float32_matmul_precision("high")'


def propose(case: Case) -> list[Proposal] | Unfit:
    """One line after the imports of the script, for a float32 model on a GPU."""
    model = case.measurement.model
    if not model.device.startswith("cuda"):
        return Unfit("the model runs on no GPU")
    if model.dtype != "torch.float32":
        return Unfit(f"the model is in {model.dtype.removeprefix('torch.') or 'no known type'}")
    share = case.share("forward", "backward", "sync")
    if share < _MIN_SHARE:
        return Unfit(f"the model takes {percent(share)} of the step")
    path = case.program.script
    try:
        if path is None or not case.program.owns(path) or "set_float32_matmul_precision" in case.sources.text(path):
            return Unfit("the script is not the program's own, or sets the precision itself")
        sources = with_line_after_imports(case.sources, path, _LINE)
    except SourceError as error:
        return Unfit(str(error))
    if sources is None:
        return Unfit("the script does not import torch itself")
    return [
        Proposal(
            NAME, f"matrix products in TensorFloat-32 ({path.name})", EXACTNESS, predicted_without(share, _REMOVED),
            f"the model takes {percent(share)} of the step in float32", sources=sources, arithmetic="tf32", key="tf32",
        )
    ]  # fmt: skip

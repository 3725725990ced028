"""Matrix products of float32 on a GPU's TensorFloat-32 units: 10 bits of precision, the range of float32."""

from __future__ import annotations

from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import NotApplicable, Remedy
from unstall.optimize.source.toplevel import with_statement_after_imports
from unstall.text.units import percent

_REMOVED = 0.3  # of the model's time
_MIN_SHARE = 0.3
_SETTER = "set_float32_matmul_precision"


class TensorFloat32(Remedy):
    """One line after the imports of the script, for a float32 model on a GPU."""

    name = "tf32"
    brief = "on a GPU, products of float32 in TensorFloat-32"
    patterns = ("compute-bound",)
    exactness = "close"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        model = context.measurement.model
        if not context.on_gpu:
            raise NotApplicable("the model runs on no GPU")
        if model.dtype != "torch.float32":
            raise NotApplicable(f"the model is in {model.dtype.removeprefix('torch.') or 'no known type'}")
        share = context.share("forward", "backward", "sync")
        if share < _MIN_SHARE:
            raise NotApplicable(f"the model takes {percent(share)} of the step")
        path, module, torch = context.script_with("torch")
        if _SETTER in module.text:
            raise NotApplicable("the script sets the precision itself")
        changed = with_statement_after_imports(module.tree, f'{torch}.{_SETTER}("high")')
        return [
            Proposal(
                f"matrix products in TensorFloat-32 ({path.name})",
                speedup_without(share, _REMOVED),
                f"the model takes {percent(share)} of the step in float32",
                sources=context.sources.with_module(path, changed),
                compute_dtype="tf32",
                key="tf32",
            )
        ]


REMEDY = TensorFloat32()

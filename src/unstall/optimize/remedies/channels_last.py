"""Convolutions with the channels innermost in memory, as their fastest kernels want them."""

from __future__ import annotations

from unstall.optimize.case import Area, Case, Exactness, Proposal, Unfit, predicted_without
from unstall.optimize.remedies.compiled_model import with_line_after_optimizer
from unstall.text.units import percent

NAME = "channels-last"
AREA: Area = "compute"
EXACTNESS: Exactness = "close"
"""Another kernel sums in another order."""

_REMOVED = 0.2  # of the convolutions' time
_MIN_SHARE = 0.3


def propose(case: Case) -> list[Proposal] | Unfit:
    """For a model whose time is in two-dimensional convolutions."""
    modules = case.measurement.modules
    total = sum(module.self_s for module in modules) or 1.0
    share = sum(module.self_s for module in modules if module.type in ("Conv2d", "ConvTranspose2d")) / total
    share *= case.share("forward", "backward")
    if share < _MIN_SHARE:
        return Unfit(f"convolutions take {percent(share)} of the step")
    written = with_line_after_optimizer(case, "{model}.to(memory_format=torch.channels_last)")
    if written is None:
        return Unfit("the model's name was not found where the optimizer is made")
    sources, place = written
    return [
        Proposal(
            NAME, f"memory_format=torch.channels_last ({place})", EXACTNESS, predicted_without(share, _REMOVED),
            f"convolutions take {percent(share)} of the step", sources=sources, key="channels-last",
        )
    ]  # fmt: skip

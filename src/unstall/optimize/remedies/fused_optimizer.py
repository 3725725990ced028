"""The optimizer's update in one kernel (``fused=True``) or over lists of tensors (``foreach=True``)."""

from __future__ import annotations

from unstall.optimize import rewrite
from unstall.optimize.case import Area, Case, Exactness, Made, Proposal, Unfit, predicted_without
from unstall.optimize.sources import SourceError
from unstall.text.units import percent

NAME = "fused-optimizer"
AREA: Area = "compute"
EXACTNESS: Exactness = "close"
"""The same formula in another order of operations."""

_FUSED = {"Adam", "AdamW", "SGD", "Adagrad"}
_FOREACH = {"Adam", "AdamW", "SGD", "Adagrad", "RMSprop", "NAdam", "RAdam", "Adadelta", "Adamax", "ASGD", "Rprop"}
_REMOVED = {"fused": 0.6, "foreach": 0.3}  # of the optimizer's time
_MIN_SHARE = 0.04


def propose(case: Case) -> list[Proposal] | Unfit:
    """For each optimizer of torch's that has such a form and does not use it."""
    share = case.share("optimizer")
    if share < _MIN_SHARE:
        return Unfit(f"the optimizer takes {percent(share)} of the step")
    found = []
    for made in case.probe.optimizers:
        name = str(made["type"])
        if not str(made["module"]).startswith("torch.optim"):
            continue
        for option, fits in (("fused", _FUSED), ("foreach", _FOREACH)):
            if name in fits and not made["fused"] and not (option == "foreach" and made["foreach"]):
                found.append(_proposal(case, made, name, option, share))
    return found or Unfit("the optimizer has no fused form, or uses it")


def _proposal(case: Case, made: Made, name: str, option: str, share: float) -> Proposal:
    setting = {"optimizer": {option: True}}
    predicted = predicted_without(share, _REMOVED[option])
    because = f"the optimizer takes {percent(share)} of the step"
    path = case.user_file(made.call.file) if made.call else None
    if path is not None and made.call is not None:
        try:
            parsed = rewrite.Found(case.sources.parse(path))
            call = parsed.call(made.call)
            if call is not None:
                changed = rewrite.with_keyword(call, option, "True")
                sources = case.sources.with_module(path, rewrite.replaced(parsed.module, call, changed))
                title = f"{name}({option}=True) ({path.name}:{made.call.line})"
                return Proposal(
                    NAME, title, EXACTNESS, predicted, because, sources=sources, runtime=setting, key=name + option
                )
        except SourceError:
            pass
    return Proposal(
        NAME, f"{name}({option}=True) at run time", EXACTNESS, predicted, because, settings=setting,
        not_written="the call that makes it is not in the program's own code", key=name + option,
    )  # fmt: skip

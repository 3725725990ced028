"""The model compiled by torch: its operators fused to fewer kernels, the Python between them traced once."""

from __future__ import annotations

import os
import shutil

from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.thresholds import COMPILED_MODEL_SAVES
from unstall.optimize.whole_models import NEEDS, with_statements
from unstall.text.units import percent

_COMPILERS = ("g++", "clang++", "c++")
"""What torch compiles with for a processor, where the variable ``CXX`` names no other."""

_AS_TORCH_DRAWS = 'options={"fallback_random": True}'
"""Compiled code draws random numbers of its own, unless it is told to have torch draw them."""


class CompileModel(Remedy):
    """``model.compile()`` where the model is whole."""

    name = "compile-model"
    brief = "`model.compile()`: the model's operators fused by torch.compile"
    needs = f"{NEEDS}; a C++ compiler"
    patterns = ("overhead-bound", "compute-bound", "host-bound")
    exactness = "close"
    """Fused operators round in other places."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        if context.measurement.compiled_frames:
            raise NotApplicable("the program uses torch.compile")
        if not has_compiler():
            raise NotApplicable("torch.compile needs a C++ compiler, and there is none here: install g++")
        options = _AS_TORCH_DRAWS if _drops(context) else ""
        sources, title = with_statements(context, lambda model, torch: f"{model}.compile({options})")
        share, other = context.share("forward", "backward"), 1 - context.arithmetic
        because = f"the model takes {percent(share)} of the step, and {percent(other)} of that is not arithmetic"
        return [
            Proposal(
                title,
                speedup_without(share, COMPILED_MODEL_SAVES * other),
                f"{because} at a good rate",
                sources=sources,
                compiles=True,
                key="all models",
            )
        ]


def has_compiler() -> bool:
    """Whether there is a C++ compiler where torch looks for one."""
    return any(map(shutil.which, filter(None, (os.environ.get("CXX"), *_COMPILERS))))


def _drops(context: RemedyContext) -> bool:
    """Whether the model has layers that draw random numbers."""
    return any("Dropout" in module.type for module in context.measurement.modules)


REMEDY = CompileModel()

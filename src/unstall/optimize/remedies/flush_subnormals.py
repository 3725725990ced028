"""Subnormal numbers are taken for zeros, where an optimizer's become so small that a step takes longer and longer."""

from __future__ import annotations

from unstall.diagnose.patterns.slows_down import SUBNORMALS
from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, in_source
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.files import Sources
from unstall.optimize.source.toplevel import with_statement_after_imports
from unstall.optimize.thresholds import FLUSH_SAVES
from unstall.text.units import percent


class FlushSubnormals(Remedy):
    """Set before torch computes anything: threads have it from the one that starts them."""

    name = "flush-subnormals"
    brief = "numbers below 1.2e-38 are taken for zeros"
    needs = "a step that takes longer the more of them were made, by an optimizer's subnormal numbers"
    patterns = ("slows-down",)
    exactness = "close"
    """What is lost is 1e31 times smaller than the unit in the last place of a 1."""
    never_exact = True

    def propose(self, context: RemedyContext) -> list[Proposal]:
        finding = context.finding_of(SUBNORMALS)
        if finding is None:
            raise NotApplicable("no step takes longer by subnormal numbers")
        sources, place = in_source(lambda: _after_imports(context), "when torch is imported, at run time")
        return [
            Proposal(
                f"torch.set_flush_denormal(True) {place}",
                speedup_without(finding.share or 0.0, FLUSH_SAVES),
                f"{percent(context.measurement.memory.subnormal)} of what the optimizer keeps is subnormal",
                sources=sources,
                settings={"flush_subnormals": True},
                key="flush",
            )
        ]


def _after_imports(context: RemedyContext) -> tuple[Sources, str]:
    """The sources with the call after the script's imports, and its place. Raises NotApplicable."""
    path, module, torch = context.script_with("torch")
    tree = with_statement_after_imports(module.tree, f"{torch}.set_flush_denormal(True)")
    return context.sources.with_module(path, tree), f"after the imports of {path.name}"


REMEDY = FlushSubnormals()

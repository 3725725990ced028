"""NumPy's BLAS computes on one thread, where its team takes the cores of torch's."""

from __future__ import annotations

from contextlib import suppress

from unstall.diagnose.own_threads import contended_s
from unstall.diagnose.thresholds import OVERSUBSCRIBED
from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.files import Sources
from unstall.optimize.source.toplevel import with_statement_before_imports
from unstall.optimize.thresholds import ONE_TEAM_SAVES
from unstall.text.units import percent

VARIABLE = "OPENBLAS_NUM_THREADS"
"""The variable of NumPy's own wheels. Not MKL's: torch computes with that."""


class BlasThreads(Remedy):
    """The variable is read when NumPy is imported, so it is set before; one that the user sets has its way."""

    name = "blas-threads"
    brief = "NumPy's BLAS leaves torch the cores"
    needs = "a model on the processor, whose threads wait for cores that no other program has"
    patterns = ("oversubscribed", "callback-bound", "host-bound")
    exactness = "close"
    """Sums over threads are added in another order."""

    def propose(self, context: RemedyContext) -> list[Proposal]:
        measured = context.measurement
        share = contended_s(measured) / measured.step.mean
        if share < OVERSUBSCRIBED:
            raise NotApplicable("threads of the program do not take each other's cores")
        return [
            Proposal(
                f"one thread for NumPy's BLAS ({VARIABLE}=1)",
                speedup_without(share, ONE_TEAM_SAVES),
                f"for {percent(share)} of the step the model's threads wait for cores that others of the program have",
                sources=_before_imports(context),
                key="1",
                competes_for_cores=True,
            )
        ]


def _before_imports(context: RemedyContext) -> Sources:
    """A line before the imports of the script. Raises NotApplicable."""
    with suppress(NotApplicable):
        return _set_in(context, "numpy")
    return _set_in(context, "torch")


def _set_in(context: RemedyContext, library: str) -> Sources:
    path, module, _ = context.script_with(library)
    tree = with_statement_before_imports(module.tree, f'os.environ.setdefault("{VARIABLE}", "1")', needs="os")
    return context.sources.with_module(path, tree)


REMEDY = BlasThreads()

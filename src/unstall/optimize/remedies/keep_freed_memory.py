"""Memory that is taken from the kernel anew in every step: the allocator keeps what is freed."""

from __future__ import annotations

from unstall.child import allocator
from unstall.diagnose import page_faults
from unstall.optimize.context import RemedyContext
from unstall.optimize.proposal import Proposal, speedup_without
from unstall.optimize.remedies.base import Remedy, in_source
from unstall.optimize.source.errors import NotApplicable
from unstall.optimize.source.files import Sources
from unstall.optimize.source.toplevel import with_import, with_statement_after_imports
from unstall.optimize.thresholds import KEPT_MEMORY_SAVES, LEAST_FAULTING
from unstall.text.units import percent

_LINES = (
    "ctypes.CDLL(None).mallopt(-4, 0)  # M_MMAP_MAX: memory that is freed is kept, large blocks too",
    "ctypes.CDLL(None).mallopt(-1, -1)  # M_TRIM_THRESHOLD",
)
"""See mallopt(3) and malloc.h of glibc."""


class KeepFreedMemory(Remedy):
    """By glibc's mallopt: no mapping of its own for a large block, and no end of the heap given back."""

    name = "keep-freed-memory"
    brief = "memory that is freed is kept for the next step, not given back to the kernel; it may take twice as much"
    needs = "page faults that take 5 % of the step, and room for three times the memory"
    patterns = ("compute-bound", "host-bound", "input-bound")
    exactness = "exact"

    def propose(self, context: RemedyContext) -> list[Proposal]:
        share = page_faults.share(context.measurement)
        if share < LEAST_FAULTING:
            raise NotApplicable(f"page faults take {percent(share)} of the step")
        if not allocator.can_keep():
            raise NotApplicable("the C library has no mallopt")
        if not page_faults.has_room(context.measurement):
            raise NotApplicable("there is not enough memory to keep what is freed")
        sources, place = in_source(lambda: _after_imports(context), "when torch is imported, at run time")
        return [
            Proposal(
                f"what is freed is kept, by mallopt {place}",
                speedup_without(share, KEPT_MEMORY_SAVES),
                f"page faults take {percent(share)} of the step",
                sources=sources,
                settings={"keep_freed_memory": True},
                key="mallopt",
            )
        ]


def _after_imports(context: RemedyContext) -> tuple[Sources, str]:
    """The sources with the calls after the script's imports, and their place. Raises NotApplicable."""
    path, module = context.script()
    tree = with_import(with_statement_after_imports(module.tree, *_LINES), "ctypes")
    return context.sources.with_module(path, tree), f"after the imports of {path.name}"


REMEDY = KeepFreedMemory()
